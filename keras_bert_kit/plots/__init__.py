"""Pictures: which tokens look at which, how a run went, where a classifier errs, how long texts are.

figures.py         matplotlib, if it is installed, and where a picture goes
attention.py       heat maps of one head, of all heads of a block, of all blocks
attention_page.py  the same as a page for a browser, in one file
training.py        loss, accuracies and learning rate by step
evaluation.py      confusion matrix, token lengths
"""

from keras_bert_kit.plots.attention import plot_all_attention, plot_attention, plot_attention_heads
from keras_bert_kit.plots.attention_page import write_attention_page
from keras_bert_kit.plots.evaluation import plot_confusion_matrix, plot_token_lengths
from keras_bert_kit.plots.figures import has_matplotlib, require_matplotlib
from keras_bert_kit.plots.training import plot_training

__all__ = [
    "has_matplotlib",
    "plot_all_attention",
    "plot_attention",
    "plot_attention_heads",
    "plot_confusion_matrix",
    "plot_token_lengths",
    "plot_training",
    "require_matplotlib",
    "write_attention_page",
]
