"""Docstrings as the package writes them, Google's sections with Markdown inside, as the reStructuredText of Sphinx.

What autodoc and napoleon do not know by themselves: code in single backticks, fenced blocks, `Source:` lines, and that
the arguments of a Keras layer are those of its `__init__`. A name in backticks that the package makes public is a link.
"""

import inspect
import re

from public_names import SPEAKING

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`(\w?)")
_REFERENCE = re.compile(r"^( *)(Source|Reference): ", re.MULTILINE)
_KEY = re.compile(r"^( +)(?=`\w+`: )", re.MULTILINE)  # a line that describes one key of a dictionary
_ITEM = re.compile(r" *\* ")


def _code(match):
    """A name as a link, other code as it is; letters that follow at once, as in `Prediction`s, are kept apart."""
    code, letter = " ".join(match.group(1).split()), match.group(2)
    role = f":py:obj:`{code} <{SPEAKING[code]}>`" if code in SPEAKING else f"``{code}``"
    return f"{role}\\ {letter}" if letter else role


def _with_blank_lines(text):
    """Lists with an empty line before and behind them, which reStructuredText wants."""
    lines, depth = [], None  # depth: of the list that we are in
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(line) is not None
        begins = item and (depth is None or indent > depth)
        ends = depth is not None and line.strip() != "" and not item and indent <= depth
        if (begins or ends) and lines and lines[-1].strip():
            lines.append("")
        if line.strip():
            depth = indent if item else None if ends else depth
        lines.append(line)
    return "\n".join(lines)


def _prose(text):
    """Markdown of a docstring's text as reStructuredText."""
    text = _with_blank_lines(_KEY.sub(r"\1*   ", text))
    pieces = re.split(r"(`[^`]+`)", text)  # text, code, text, …
    pieces[::2] = [_escaped(piece) for piece in pieces[::2]]
    return _REFERENCE.sub(r"\1**\2:** ", _CODE.sub(_code, "".join(pieces)))


def _escaped(text):
    """Signs that mean something in reStructuredText and nothing in Markdown."""
    text = text.replace("|", r"\|").replace(", **", r", \*\*")
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)


def to_rst(text):
    """Translates a docstring.

    Args:
        text: str, without the indentation of the code.
    """
    pieces = _FENCE.split(text)  # text, indentation, language, code, text, …
    result = [_prose(pieces[0])]
    for indent, language, code, after in zip(*(pieces[first::4] for first in range(1, 5)), strict=True):
        block = "".join(f"   {line}" if line.strip() else line for line in code.splitlines(keepends=True))
        result += [f"\n{indent}.. code-block:: {language or 'text'}\n\n{block}", _prose(after)]
    return "".join(result)


def translate(app, what, name, obj, options, lines):
    """Translates a docstring before napoleon sees it. `>>>` begins a block of its own."""
    text = re.sub(r"(?<=\n)( *)Example:\n+(?= *>>>)", r"\1Example:\n\n", to_rst("\n".join(lines)))
    lines[:] = text.split("\n")


def undo_for_properties(app, what, name, obj, options, lines):
    """Napoleon takes what stands before the first colon in the docstring of a property for a type; here it is text."""
    if what == "property":
        lines[:] = to_rst(inspect.getdoc(obj)).split("\n")


def signature_of_init(app, what, name, obj, options, signature, returned):
    """Keras' classes have a `__new__` that takes anything; what they want is said by `__init__`."""
    makers = [maker for maker in (obj.__init__, obj.__new__) if inspect.isfunction(maker)] if what == "class" else []
    if makers:
        parameters = list(inspect.signature(makers[0]).parameters.values())[1:]
        plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
        return str(inspect.Signature(plain)), None


def setup(app):
    """Called by Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", translate, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", undo_for_properties, priority=600)
    app.connect("autodoc-process-signature", signature_of_init)
    return {"parallel_read_safe": True}
