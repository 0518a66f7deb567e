"""Files of the repository as pages: notebooks with what they put out, and Markdown files outside docs/.

Links among all of them are those of the repository. Where one leads to a file that is a page here, it leads to the
page; where it leads to another file, there is no link, only its text.
"""

import base64
import json
import os
import re

import generated

ROOT = generated.DOCS.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# {file: page, without ending}: every file that is a page.
PAGES = {
    **{path: path.with_suffix("") for path in generated.DOCS.glob("*.md")},
    **{path: generated.GENERATED / "notebooks" / path.stem for path in NOTEBOOKS},
    ROOT / "notebooks/README.md": generated.GENERATED / "notebooks/index",
    ROOT / "saved_models/small_bert/README.md": generated.GENERATED / "small_bert",
    ROOT / "CHANGELOG.md": generated.GENERATED / "changelog",
    ROOT / "SECURITY.md": generated.GENERATED / "security",
}
_LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def with_links(text, file):
    """The text of a file with its links as they are on the site.

    Args:
        text: str, Markdown.
        file: Path, where the text comes from.
    """

    def replace(match):
        image, label, target, anchor = match.groups()
        linked = (file.parent / target).resolve() if target else file
        here = PAGES[file].parent
        if image and linked.is_file():
            return f"![{label}]({os.path.relpath(linked, here)})"
        if linked in PAGES:
            return f"[{label}]({os.path.relpath(PAGES[linked], here)}.md{anchor or ''})"
        if linked.exists():
            return label
        raise FileNotFoundError(f"{file.relative_to(ROOT)}: no file for the link {match.group()}")

    # Blocks of code and code in a line stay as they are.
    pieces = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.DOTALL | re.MULTILINE)  # text, code, text, …
    pieces[::2] = [_LINK.sub(replace, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _fenced(text, language):
    """A block of code, as Markdown."""
    return f"````{language}\n{text.rstrip()}\n````"


def _output(output, name):
    """What a cell of a notebook put out, as Markdown. Pictures become files."""
    data = output.get("data", {})
    if "image/png" in data:
        generated.write(f"notebooks/{name}.png", base64.b64decode(data["image/png"]))
        return f"![what the cell above draws]({name}.png)"
    lines = output.get("text") or data.get("text/plain", [])
    return _fenced(_COLOURS.sub("", "".join(lines)), "text")


def notebook_page(path):
    """A notebook as Markdown."""
    pieces = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            pieces.append(with_links(source, path))
            continue
        pieces.append(_fenced(source, "text" if re.search(r"^[%!]", source, re.MULTILINE) else "python"))
        outputs = enumerate(cell["outputs"])
        pieces += [_output(output, f"{path.stem}/{number:02}_{index}") for index, output in outputs]
    return "\n\n".join(pieces) + "\n"


def write_pages(app):
    """Writes all that are not in docs/ already, before Sphinx looks for pages."""
    for path, page in PAGES.items():
        if path.parent != generated.DOCS:
            text = notebook_page(path) if path in NOTEBOOKS else with_links(path.read_text(encoding="utf-8"), path)
            if path.parent.name == "notebooks" and path not in NOTEBOOKS:
                names = "\n".join(notebook.stem for notebook in NOTEBOOKS)
                text += f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
            generated.write(f"{page.relative_to(generated.GENERATED)}.md", text)


def links_of_docs(app, page, source):
    """Links of the pages in docs/, as Sphinx reads them."""
    path = generated.DOCS / f"{page}.md"
    if path in PAGES:
        source[0] = with_links(source[0], path)


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", links_of_docs)
    return {"parallel_read_safe": True}
