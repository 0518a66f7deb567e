"""The API reference: a first page, and a page for each folder of the package; that of cli/ has all commands.

Nothing is listed by hand, so nothing can be forgotten: names come from the package (public_names.py), what is said
about a folder from its docstring, what is said about a command from its `--help`.
"""

import importlib
import inspect
import sys
import textwrap

import click
import generated
from docstrings import to_rst
from docutils import nodes
from public_names import PACKAGE, PARTS, PLACES, SPEAKING, methods_of
from sphinx import addnodes
from sphinx.pycode import ModuleAnalyzer


def _title(text, line="="):
    return f"{text}\n{line * len(text)}\n\n"


def _indented(text):
    return textwrap.indent(text, "   ")


def _description(module):
    """A module's docstring: its paragraphs, and the list of its files as it is."""
    for paragraph in inspect.getdoc(module).split("\n\n"):
        first = paragraph.splitlines()[0]
        yield f".. code-block:: text\n\n{_indented(paragraph)}" if ".py  " in first else to_rst(paragraph)


def _entry(name, value):
    """The directive that describes a public name."""
    if not isinstance(value, type):
        return f".. autofunction:: {PLACES[name]}\n" if callable(value) else _data(name, value)
    kind = "autoexception" if issubclass(value, Exception) else "autoclass"
    methods = ", ".join(methods_of(value))
    return f".. {kind}:: {PLACES[name]}\n" + (f"   :members: {methods}\n" if methods else "")


def _data(name, value):
    """The directive of a constant: its value, and the comment `#: …` before it."""
    text = f".. py:data:: {PLACES[name]}\n   :value: {value!r}\n"
    for module in [name_of for name_of in sys.modules if name_of.startswith(PACKAGE)]:
        comments = ModuleAnalyzer.for_module(module).find_attr_docs() if name in vars(sys.modules[module]) else {}
        if ("", name) in comments:
            return text + "\n" + _indented(to_rst("\n".join(comments["", name])))
    return text


def part_page(part):
    """The page of a folder, or of a file, of the package."""
    module = importlib.import_module(f"{PACKAGE}.{part}")
    entries = [_entry(name, getattr(module, name)) for name in PARTS[part]]
    return _title(module.__name__) + "\n\n".join([*_description(module), *entries])


def first_page():
    """Which names there are, by part, each with the first sentence of the part's docstring."""
    text = _title("API reference") + (
        "Made from the docstrings. ``import keras_bert_kit as kbk`` has the names without a folder;\n"
        "the others are imported from their folder.\n\n"
    )
    for part in PARTS:
        module = importlib.import_module(f"{PACKAGE}.{part}")
        names = ", ".join(
            f":py:obj:`{PLACES[name].removeprefix(f'{PACKAGE}.')} <{PLACES[name]}>`" for name in PARTS[part]
        )
        summary = " ".join(inspect.getdoc(module).split("\n\n")[0].split()).split(". ")[0].removesuffix(".") + "."
        text += f":doc:`{part}`\n" + _indented(f"{to_rst(summary)}\n\n{names}") + "\n\n"
    return text + ".. toctree::\n   :hidden:\n\n" + _indented("\n".join(PARTS)) + "\n"


def commands():
    """`--help` of every command."""
    from keras_bert_kit.cli.command import cli

    text = ""
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=f"keras-bert-kit {name}", max_content_width=100, terminal_width=96)
        text += "\n\n" + _title(name, "-") + f".. code-block:: text\n\n{_indented(command.get_help(context))}"
    return text


def write_pages(app):
    """Writes all of them, before Sphinx looks for pages."""
    for part in PARTS:
        generated.write(f"api/{part}.rst", part_page(part) + (commands() if part == "cli" else ""))
    generated.write("api/index.rst", first_page())


def link_names(app, doctree):
    """Makes links of the public names that stand as code in a text, with or without `kbk.` before them."""
    for node in list(doctree.findall(nodes.literal)):
        place = SPEAKING.get(node.astext().removeprefix("kbk."))
        if place and not isinstance(node.parent, nodes.title | nodes.reference | addnodes.pending_xref):
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=place, refexplicit=True)
            node.replace_self(link)
            link += node


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
