"""Style, body and script of the page that `attention_page.py` writes. Nothing in them depends on the data."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; margin: 1.5rem auto; max-width: 86rem;
  padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; }
h2 { font-size: 1.05rem; margin: 1.2rem 0 .4rem; }
p { margin: .3rem 0; color: #57606a; }
#tokens { display: flex; flex-wrap: wrap; gap: .35rem .2rem; }
#tokens button { font: 15px/1.3 ui-monospace, monospace; padding: .2rem .4rem; border: 2px solid #d0d7de;
  border-radius: .4rem; cursor: pointer; color: inherit; background: #fff; min-width: 3.2rem; white-space: pre; }
#tokens button small { display: block; font: 11px/1.2 system-ui, sans-serif; opacity: .85; }
#tokens button.chosen { border-color: #bc4c00; }
.columns { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; }
section { max-width: 100%; overflow-x: auto; }
#overview { display: grid; gap: 4px; align-items: center; }
#overview span { font-size: 11px; color: #57606a; text-align: center; }
#overview canvas { width: 40px; height: 40px; image-rendering: pixelated; border: 2px solid #d0d7de; cursor: pointer;
  display: block; }
#overview canvas.chosen { border-color: #bc4c00; }
#map { border-collapse: collapse; font: 12px/1 ui-monospace, monospace; }
#map th { font-weight: normal; padding: 0 .3rem; white-space: pre; }
#map tbody th { text-align: right; }
#map thead th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; padding: .3rem 0; }
#map td { width: 20px; height: 20px; min-width: 20px; padding: 0; border: 1px solid #eaeef2; }
#map .chosen { color: #bc4c00; font-weight: bold; }
label { cursor: pointer; margin-right: 1rem; }
"""

BODY = """<p>Point at a token, or click on it to hold it. The number under a token is its share of the attention,
in steps of 0.4 %. Blocks and heads are counted from 0.</p>
<h2 id="name"></h2>
<p><label><input type="radio" name="way" id="looks" checked> what the token looks at</label>
<label><input type="radio" name="way"> what looks at the token</label></p>
<div id="tokens"></div>
<p id="sentence"></p>
<div class="columns">
<section><h2>All blocks and heads: click on one</h2><div id="overview"></div></section>
<section><h2>This head: row looks at column</h2><table id="map"></table></section>
</div>"""

SCRIPT = """
"use strict";
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const size = data.tokens.length;
const bytes = Uint8Array.from(atob(data.scores), (character) => character.charCodeAt(0));
const score = (block, head, from, to) => bytes[((block * data.heads + head) * size + from) * size + to] / 255;

const address = new URLSearchParams(location.hash.slice(1));
const within = (name, count) => Math.min(Math.max(parseInt(address.get(name)) || 0, 0), count - 1);
const chosen = { block: within("block", data.blocks), head: within("head", data.heads), token: within("token", size) };

function add(parent, kind, text) {
  const element = document.createElement(kind);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function color(share) { // white to blue; the root makes small shares visible
  const strength = Math.sqrt(share);
  return `rgb(${255 - 250 * strength}, ${255 - 180 * strength}, ${255 - 85 * strength})`;
}

function paint(element, share) {
  element.style.backgroundColor = color(share);
  element.style.color = share > 0.5 ? "#fff" : ""; // where white becomes the more legible one
}

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

// The tokens
const chips = data.tokens.map((token, number) => {
  const chip = add(byId("tokens"), "button", token);
  chip.share = add(chip, "small");
  chip.addEventListener("mouseenter", () => showToken(number));
  chip.addEventListener("mouseleave", () => showToken(chosen.token));
  chip.addEventListener("click", () => { chosen.token = number; showToken(number); });
  return chip;
});

function showToken(number) {
  const looks = byId("looks").checked;
  const shares = data.tokens.map((_, other) =>
    looks ? score(chosen.block, chosen.head, number, other) : score(chosen.block, chosen.head, other, number));
  chips.forEach((chip, other) => {
    paint(chip, shares[other]);
    chip.share.textContent = percent(shares[other]);
    chip.classList.toggle("chosen", other === number);
  });
  const most = shares.indexOf(Math.max(...shares));
  const [from, to] = looks ? [number, most] : [most, number];
  const start = looks ? "looks most at" : "looks most, of all tokens, at";
  byId("sentence").textContent =
    `${data.tokens[from]} (${from}) ${start} ${data.tokens[to]} (${to}): ${percent(shares[most])}`;
  names.forEach(([row, column], other) => {
    row.classList.toggle("chosen", other === number);
    column.classList.toggle("chosen", other === number);
  });
}

// The heat map of one head
const names = [];
const cells = [];
function makeMap() {
  const header = add(add(byId("map"), "thead"), "tr");
  const body = add(byId("map"), "tbody");
  add(header, "td").style.border = "0";
  data.tokens.forEach((token, from) => {
    const row = add(body, "tr");
    names.push([add(row, "th", token), add(header, "th", token)]);
    cells.push(data.tokens.map(() => add(row, "td")));
    row.addEventListener("mouseenter", () => showToken(from));
    row.addEventListener("mouseleave", () => showToken(chosen.token));
  });
}

function showHead() {
  byId("name").textContent = `Block ${chosen.block}, head ${chosen.head}`;
  cells.forEach((row, from) => row.forEach((cell, to) => {
    const share = score(chosen.block, chosen.head, from, to);
    paint(cell, share);
    cell.title = `${data.tokens[from]} → ${data.tokens[to]}: ${percent(share)}`;
  }));
  pictures.forEach(([block, head, canvas]) =>
    canvas.classList.toggle("chosen", block === chosen.block && head === chosen.head));
  showToken(chosen.token);
}

// The overview
const pictures = [];
function makeOverview() {
  const overview = byId("overview");
  overview.style.gridTemplateColumns = `repeat(${data.heads + 1}, max-content)`;
  add(overview, "span", "head");
  for (let head = 0; head < data.heads; head++) add(overview, "span", head);
  for (let block = 0; block < data.blocks; block++) {
    add(overview, "span", `block ${block}`);
    for (let head = 0; head < data.heads; head++) {
      const canvas = add(overview, "canvas");
      canvas.width = canvas.height = size;
      canvas.title = `block ${block}, head ${head}`;
      const context = canvas.getContext("2d");
      for (let from = 0; from < size; from++) for (let to = 0; to < size; to++) {
        context.fillStyle = color(score(block, head, from, to));
        context.fillRect(to, from, 1, 1);
      }
      canvas.addEventListener("click", () => { chosen.block = block; chosen.head = head; showHead(); });
      pictures.push([block, head, canvas]);
    }
  }
}

document.querySelectorAll("input").forEach((input) => input.addEventListener("change", showHead));
makeMap();
makeOverview();
showHead();
"""
