"""BERT for TensorFlow and Keras 3."""
