"""Attention as a page for a browser: one file that loads nothing, to point at tokens in.

The scores lie in the page as JSON, tokens are put into it as text and never as HTML, and its content security policy
allows this one script and no connection, so that a text from anywhere can be shown.
"""

import base64
import hashlib
import html
import json
from pathlib import Path

import numpy as np

from keras_bert_kit.plots.attention import square_scores
from keras_bert_kit.plots.attention_page_parts import BODY, SCRIPT, STYLE


def write_attention_page(scores, tokens, path, *, title=None):
    """Writes an HTML file that shows the attention of every head of every block.

    A head is chosen by a click in the overview. Pointing at a token colours the tokens that it looks at, or, the other
    way round, those that look at it. `#block=2&head=3&token=4` behind the address opens the page there.

    Args:
        scores: list of arrays or tensors (heads, sequence, sequence), one for each block; of what the encoder returns
            as `attention_scores`, one text of the batch: `[scores[0] for scores in outputs["attention_scores"]]`.
            Numbers from 0 to 1; they are kept in steps of 1/255, which makes a byte of each.
        tokens: list of str, as many as the sequence is long, without padding. Longer scores are cut.
        path: file to write, `.html`. The folder must exist.
        title: str, of the page.

    Returns:
        `pathlib.Path` of the file.

    Raises:
        ValueError: The scores have another shape, there are more tokens than rows, or a score is not within 0 and 1.

    Example:

    >>> outputs = bert.encoder(pack([text]), return_attention_scores=True)
    >>> write_attention_page([s[0] for s in outputs["attention_scores"]], tokens, "attention.html")
    """
    scores = square_scores(scores, tokens, 4)
    if not (scores.min() >= 0.0 and scores.max() <= 1.0 + 1e-3):  # NaN fails too
        raise ValueError(
            f"scores must be within 0 and 1. Received: {scores.min():.4g} to {scores.max():.4g}. "
            "They are what softmax gives, not the logits before it."
        )
    blocks, heads = scores.shape[:2]
    in_bytes = np.round(255 * np.minimum(scores, 1.0)).astype(np.uint8).tobytes()
    data = {
        "tokens": [str(token) for token in tokens],
        "blocks": blocks,
        "heads": heads,
        "scores": base64.b64encode(in_bytes).decode("ascii"),
    }
    Path(path).write_text(_page(data, title or "Attention"), encoding="utf-8")
    return Path(path)


def _page(data, title):
    policy = f"default-src 'none'; script-src '{_hash_of(SCRIPT)}'; style-src '{_hash_of(STYLE)}'"
    as_json = json.dumps(data).replace("<", "\\u003c")  # "</script>" in a token must not end the script
    title = html.escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
{BODY}
<script type="application/json" id="data">{as_json}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _hash_of(source):
    """What a content security policy calls an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
