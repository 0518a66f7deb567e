"""The attention page: one file, nothing loaded, nothing of a token executed; opened in a browser where there is one."""

import base64
import html.parser
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from keras_bert_kit import plots

TOKENS = [
    "[CLS]",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "&amp;",
    "über",
    "模型",
    "\u2028",
]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


def softmaxed(*shape):
    scores = np.exp(3 * np.random.default_rng(0).random(shape))
    return scores / scores.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def scores():
    return softmaxed(2, 3, 9, 9)  # two of the nine are padding


@pytest.fixture(scope="module")
def page(scores, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    return plots.write_attention_page(list(scores), TOKENS, path, title="Who <b>looks</b> & where")


class Tags(html.parser.HTMLParser):
    """Collects the tags of a page, and what is written in scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


def test_the_page_loads_nothing(page):
    found = Tags(page.read_text(encoding="utf-8"))
    assert [tag for tag, _ in found.tags if tag in ("img", "link", "iframe", "b", "base", "form")] == []
    assert not any({"src", "href"} & set(attributes) for _, attributes in found.tags)
    assert not re.search(r"https?://|@import|url\(|fetch\(|innerHTML|XMLHttpRequest", page.read_text(encoding="utf-8"))
    (policy,) = [tag["content"] for name, tag in found.tags if name == "meta" and "http-equiv" in tag]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy


def test_the_page_holds_the_scores(page, scores):
    found = Tags(page.read_text(encoding="utf-8"))
    assert [tag.get("type") for name, tag in found.tags if name == "script"] == ["application/json", None]
    data = json.loads(found.scripts[0])
    kept = np.frombuffer(base64.b64decode(data["scores"]), np.uint8).reshape(2, 3, 7, 7) / 255
    assert (data["tokens"], data["blocks"], data["heads"]) == (TOKENS, 2, 3)
    np.testing.assert_allclose(kept, scores[:, :, :7, :7], atol=0.5 / 255 + 1e-6)


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan])
def test_what_is_no_share_is_refused(tmp_path, value):
    wrong = softmaxed(1, 1, 3, 3)
    wrong[0, 0, 1, 1] = value
    with pytest.raises(ValueError, match="within 0 and 1. Received: .*softmax"):
        plots.write_attention_page(wrong, ["a", "b", "c"], tmp_path / "x.html")
    with pytest.raises(ValueError, match=r"\(blocks, heads, sequence, sequence\).*Received: shape \(3, 3\), 2 tokens"):
        plots.write_attention_page(np.eye(3), ["a", "b"], tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    """A function from the part of the address behind `#` to the page as the browser has it after its script ran."""
    if CHROMIUM is None:
        pytest.skip("needs chromium on the PATH (apt-get install chromium)")
    options = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
        --disable-component-update --disable-sync --virtual-time-budget=2000 --window-size=1280,900""".split()

    def opened(place, page=page):
        profile = tmp_path_factory.mktemp("profile")
        picture = profile / "screenshot.png"
        command = [CHROMIUM, *options, f"--user-data-dir={profile}", f"--screenshot={picture}", "--dump-dom"]
        address = page.as_uri() + (f"#{place}" if place else "")
        done = subprocess.run([*command, address], capture_output=True, encoding="utf-8", timeout=120, check=True)
        assert picture.stat().st_size > 10_000
        return done.stdout

    return opened


def text_of(pattern, dom):
    return [html.unescape(found) for found in re.findall(pattern, dom, flags=re.DOTALL)]


def test_a_browser_shows_the_tokens_as_text(browser, scores):
    dom = browser("block=1&head=2&token=4")
    assert (
        "<script>alert" not in dom and "<img" not in dom and "<h1>Who &lt;b&gt;looks&lt;/b&gt; &amp; where</h1>" in dom
    )
    assert text_of(r"<button[^>]*>([^<]*)<small>", dom) == TOKENS
    assert dom.count("<canvas") == 2 * 3 and dom.count("<td title=") == 7 * 7
    assert text_of(r'<h2 id="name">([^<]*)', dom) == ["Block 1, head 2"]
    kept = np.round(255 * scores[1, 2, 4, :7]) / 255
    shares = text_of(r"<small>([\d.]+) %</small>", dom)
    np.testing.assert_allclose([float(share) / 100 for share in shares], kept, atol=0.006)
    most = int(kept.argmax())
    (sentence,) = text_of(r'<p id="sentence">([^<]*)', dom)
    assert sentence.startswith(f"über (4) looks most at {TOKENS[most]} ({most}): ")


def test_an_address_beyond_the_page_opens_the_nearest(browser):
    assert text_of(r'<h2 id="name">([^<]*)', browser("block=99&head=-1&token=x")) == ["Block 1, head 0"]


def test_pointing_clicking_and_turning_round(page, browser, scores, tmp_path):
    """A copy without the policy, and with a script that plays the mouse."""
    mouse = """
const send = (element, kind) => element.dispatchEvent(new MouseEvent(kind));
send(document.querySelectorAll("canvas")[5], "click");
send(document.querySelectorAll("button")[2], "click");
send(document.querySelectorAll("button")[3], "mouseenter");
add(document.body, "p", byId("sentence").textContent).className = "seen";
send(document.querySelectorAll("button")[3], "mouseleave");
document.querySelectorAll("input")[1].click();
add(document.body, "p", byId("sentence").textContent).className = "seen";
"""
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
    copy = tmp_path / "copy.html"
    copy.write_text(text.replace("</body>", f"<script>{mouse}</script></body>"), encoding="utf-8")
    pointed, turned = text_of(r'<p class="seen">([^<]*)', browser("", copy))
    kept = scores[1, 2, :7, :7]
    assert pointed.startswith(f"&amp; (3) looks most at {TOKENS[kept[3].argmax()]} ({kept[3].argmax()})")
    looks = kept[:, 2].argmax()
    assert turned.startswith(f"{TOKENS[looks]} ({looks}) looks most, of all tokens, at {TOKENS[2]} (2)")
