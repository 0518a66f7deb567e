"""From text to ids: vocabularies, the tokenizer, the packer. In reading order.

vocabulary.py    one token a line
texts.py         what may be given as texts
normalizer.py    characters as BERT sees them, words as it divides them
characters.py    both, and the alphabet of the vocabulary, as one table
trie.py          the vocabulary as a trie in three arrays
wordpiece.py     words, and pieces of words
tokenizer.py     BertTokenizer: all of it in one graph
packer.py        BertPacker: [CLS], [SEP], padding
"""

from keras_bert_kit.text.packer import BertPacker
from keras_bert_kit.text.tokenizer import BertTokenizer

__all__ = ["BertPacker", "BertTokenizer"]
