"""`python -m keras_bert_kit` is the command line."""

from keras_bert_kit.cli import main

main()
