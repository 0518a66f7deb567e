"""From text to ids: vocabularies, the tokenizer, the packer. In reading order:

tokenizer.py               BertTokenizer: texts to ids; its picture shows the steps
pieces.py                  the steps in a row:
    code_points.py             texts as code points, and tables with a number for each
    normalizer.py              characters as BERT sees them, words as it divides them
    hugging_face_unicode.py    Unicode as Hugging Face's tokenizers know it
    tf_hub_unicode.py          normalisation as TF-Hub's preprocessing SavedModels do it
    final_sigma.py             the one letter whose lower case depends on its neighbours, for Google's
    special_tokens.py          "[MASK]" written in a text
    characters.py              all of these and the alphabet of the vocabulary, as one table
    trie.py                    the vocabulary as a trie in three arrays
    wordpiece.py               words, and pieces of words
packer.py, layout.py       BertPacker: [CLS], [SEP], padding, truncation, windows
fast.py                    the same ids from tensorflow-text, in input pipelines
texts.py                   what may be given as texts
vocabulary.py              one token a line
learn_vocabulary.py        a vocabulary of one's own
added_tokens.py            words of one's own in an existing vocabulary
statistics.py              what to know about texts before training on them
"""

from keras_bert_kit.text.fast import faster
from keras_bert_kit.text.learn_vocabulary import learn_vocabulary, write_vocabulary
from keras_bert_kit.text.packer import BertPacker, Windows
from keras_bert_kit.text.pieces import Pieces
from keras_bert_kit.text.statistics import TextStatistics, text_statistics
from keras_bert_kit.text.tokenizer import BertTokenizer
from keras_bert_kit.text.vocabulary import Vocabulary, read_vocabulary

__all__ = [
    "BertPacker",
    "BertTokenizer",
    "Pieces",
    "TextStatistics",
    "Vocabulary",
    "Windows",
    "faster",
    "learn_vocabulary",
    "read_vocabulary",
    "text_statistics",
    "write_vocabulary",
]
