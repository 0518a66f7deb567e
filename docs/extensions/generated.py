"""Pages that are written by the build: `docs/generated/`, which git ignores."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
GENERATED = DOCS / "generated"


def write(name, text):
    """Writes a page, unless it is there already: then Sphinx need not read it again.

    Args:
        name: str, path in `docs/generated/`.
        text: str or bytes.
    """
    path = GENERATED / name
    data = text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)
