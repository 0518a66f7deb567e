"""`load_preprocessor`: a tokenizer and packer in the place of TF-Hub's preprocessing SavedModels."""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import read_preprocessor
from keras_bert_kit.pretrained.find import located
from keras_bert_kit.text import BertPacker, BertTokenizer

_LENGTH, _POSITIONS = 128, 512


def load_preprocessor(source, sequence_length=None, tf_hub_normalisation=False):
    """Makes a `BertPacker` that does what a preprocessing SavedModel of TF-Hub does, with core TensorFlow ops.

    The SavedModel is read as data: its vocabulary, whether it lower-cases, its length. It is not executed, and
    tensorflow-text is not needed.

    Its own ids are not quite those that BERT was pre-trained with: it normalises texts with NFKC and case folding
    ("½" becomes "1⁄2", "ﬁ" "fi", "ß" "ss") and turns control characters into spaces. By default the ids here are those
    of pre-training, Google's. Whoever fine-tuned on ids of the SavedModel needs `tf_hub_normalisation=True`.

    Args:
        source: folder, archive or handle, as for `load_pretrained`, such as
            "https://tfhub.dev/tensorflow/bert_en_uncased_preprocess/3". Of other sources with a vocabulary, encoders
            for example, the tokenizer is taken as `load_pretrained` has it.
        sequence_length: int, tokens of each packed example. Default: that of the SavedModel, 128 in TF-Hub's; 128 for
            other sources, or as many as the encoder has positions. (To pad to the longest text of a batch, make a
            `BertPacker(pack.tokenizer, None)`.)
        tf_hub_normalisation: bool, whether ids shall be equal to the SavedModel's own. It is kept in configs and
            exports, as `reference="tf_hub"` of the tokenizer.

    Returns:
        `BertPacker`: texts, or a pair of texts, to `input_word_ids`, `input_mask`, `input_type_ids`. Its `.tokenizer`
        is a `BertTokenizer`.

    Raises:
        CheckpointError: The source cannot be fetched, is damaged, or has no vocabulary.
        VocabularyError: The vocabulary is not one of a BERT.

    Example:

    >>> pack = load_preprocessor("https://tfhub.dev/tensorflow/bert_en_uncased_preprocess/3")
    >>> pack(["I love transformers"])["input_word_ids"]
    """
    with located(source) as found:
        if found.format is read_preprocessor:
            reference = "tf_hub" if tf_hub_normalisation else "google"
            tokenizer, length = read_preprocessor.read_preprocessor(found.path, reference)
            positions = max(length, _POSITIONS)
        else:
            tokenizer, positions = _tokenizer_of(found, tf_hub_normalisation)
            length = min(_LENGTH, positions)
    length = length if sequence_length is None else sequence_length
    return BertPacker(tokenizer, length, max_sequence_length=max(positions, length))


def _tokenizer_of(found, tf_hub_normalisation):
    """The tokenizer of a source with weights, and how many positions its encoder has."""
    read = found.format.read(found.path)
    if read.tokenizer is None:
        raise CheckpointError(
            f"A preprocessor must have a vocabulary. Received: {found.path}, a {found.kind} without one. "
            "Make the tokenizer with BertTokenizer.from_vocab_file, and pack with BertPacker(tokenizer)."
        )
    tokenizer = read.tokenizer
    if tf_hub_normalisation:
        tokenizer = BertTokenizer(tokenizer.vocabulary, tokenizer.lowercase, reference="tf_hub")
    return tokenizer, read.config.max_position_embeddings
