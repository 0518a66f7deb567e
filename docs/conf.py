"""The documentation site: `sphinx-build -W --keep-going -n docs docs/_build/html`, with the extra `[docs]` installed.

Pages are the Markdown files beside this one. `extensions/` writes the others into `generated/` first: the API reference
from the package's docstrings, the notebooks as they were run, and files of the repository such as CHANGELOG.md.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent)]

from keras_bert_kit.version import __version__  # noqa: E402

project = "keras_bert_kit"
version = release = __version__
html_title = f"keras_bert_kit {version}"
language = "en"

extensions = [
    "docstrings",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "mathml",
    "api_reference",
    "repository_pages",
]
exclude_patterns = ["_build", "extensions"]
nitpicky = True
nitpick_ignore_regex = [(r"py:\w+", r"(tf|tensorflow|keras|np|numpy)\..*")]  # described elsewhere

# Docstrings, see extensions/docstrings.py.
autodoc_typehints = "none"  # docstrings say what is taken
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_use_rtype = False
napoleon_attr_annotations = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88

# Markdown. Headings get anchors, as where the repository is read, so that a link such as training.md#checkpoints holds.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b34700", "color-brand-content": "#a34100"},
    "dark_css_variables": {"color-brand-primary": "#ff9d5c", "color-brand-content": "#ff9d5c"},
}
