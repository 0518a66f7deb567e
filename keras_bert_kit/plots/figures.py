"""What all pictures share: matplotlib, which is optional, fonts, and where a picture goes."""

import importlib.util
from pathlib import Path

from keras_bert_kit.errors import KitError

# matplotlib's own font has no ideographs; the first of these that is installed steps in for them.
_FONTS_WITH_IDEOGRAPHS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "Arial Unicode MS",
)


def has_matplotlib():
    """Says whether the extra for pictures is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib():
    """Checks that the extra for pictures is installed.

    Raises:
        KitError: It is not; the message says how to install it.
    """
    if not has_matplotlib():
        raise KitError("Pictures need matplotlib, which is not installed. Run: pip install 'keras_bert_kit[plots]'")


def new_figure(width, height):
    """Makes an empty figure that no window shows and no global state knows.

    Args:
        width, height: float, inches.

    Returns:
        `matplotlib.figure.Figure`.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def finished(figure, path, dpi):
    """Saves a figure.

    Args:
        figure: `matplotlib.figure.Figure`.
        path: file to write, or None.
        dpi: int, pixels per inch.

    Returns:
        `pathlib.Path` of the file; the figure where there is no path, which a notebook shows by itself.
    """
    if path is None:
        figure.set_dpi(dpi)
        return figure
    figure.savefig(path, dpi=dpi)
    return Path(path)


def style_of_tokens(font_size):
    """Properties of a text that is a token: `$` means nothing, and ideographs are drawn if a font has them.

    Args:
        font_size: float, points.

    Returns:
        Dictionary, for matplotlib's functions that write text.
    """
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    fallback = [name for name in _FONTS_WITH_IDEOGRAPHS if name in installed][:1]
    return {"fontsize": font_size, "fontfamily": ["DejaVu Sans", *fallback], "parse_math": False}
