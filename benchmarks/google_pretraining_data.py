"""Google's way to make pre-training data, in plain Python: what pretraining_data.py measures against.

Written anew from what google-research/bert `create_pretraining_data.py` and `tokenization.py` do: lists of strings, one
token and one random number at a time, everything in memory. The tests also compare distributions with it.
"""

import random
import unicodedata

import tensorflow as tf


def is_punctuation(character):
    code = ord(character)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_sign or unicodedata.category(character).startswith("P")


def is_space(character):
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_control(character):
    return character not in "\t\n\r" and unicodedata.category(character) in ("Cc", "Cf")


def is_ideograph(code):
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B73F
        or 0x2B740 <= code <= 0x2B81F
        or 0x2B820 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


def clean(text):
    output = []
    for character in text:
        code = ord(character)
        if code == 0 or code == 0xFFFD or is_control(character):
            continue
        output.append(" " if is_space(character) else character)
    return "".join(output)


def space_ideographs(text):
    output = []
    for character in text:
        output += [" ", character, " "] if is_ideograph(ord(character)) else [character]
    return "".join(output)


def strip_accents(word):
    output = []
    for character in unicodedata.normalize("NFD", word):
        if unicodedata.category(character) != "Mn":
            output.append(character)
    return "".join(output)


def split_punctuation(word):
    words, starts = [], True
    for character in word:
        if is_punctuation(character):
            words.append([character])
            starts = True
        else:
            if starts:
                words.append([])
            words[-1].append(character)
            starts = False
    return ["".join(characters) for characters in words]


def basic_words(text):
    words = []
    for word in space_ideographs(clean(text)).strip().split():
        words += split_punctuation(strip_accents(word.lower()))
    return " ".join(words).strip().split()


def word_pieces(word, vocabulary):
    characters = list(word)
    if len(characters) > 200:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(characters):
        end, found = len(characters), None
        while start < end:
            piece = "".join(characters[start:end])
            if start > 0:
                piece = "##" + piece
            if piece in vocabulary:
                found = piece
                break
            end -= 1
        if found is None:
            return ["[UNK]"]
        pieces.append(found)
        start = end
    return pieces


def read(paths, vocabulary, rng):
    """All documents, each a list of sentences, each a list of tokens."""
    documents = [[]]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = line.strip()
                if not line:
                    documents.append([])
                    continue
                tokens = [piece for word in basic_words(line) for piece in word_pieces(word, vocabulary)]
                if tokens:
                    documents[-1].append(tokens)
    documents = [document for document in documents if document]
    rng.shuffle(documents)
    return documents


def truncate(tokens_a, tokens_b, max_tokens, rng):
    while len(tokens_a) + len(tokens_b) > max_tokens:
        longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def mask(tokens, vocabulary_words, settings, rng):
    """Masks in place; returns positions and what was there."""
    words = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if settings.whole_word and words and token.startswith("##"):
            words[-1].append(i)
        else:
            words.append([i])
    rng.shuffle(words)
    limit = min(settings.max_predictions_per_seq, max(1, int(round(len(tokens) * settings.masked_lm_prob))))
    masked = []
    original = list(tokens)
    for word in words:
        if len(masked) >= limit:
            break
        if len(masked) + len(word) > limit:
            continue
        for i in word:
            if rng.random() < 0.8:
                tokens[i] = "[MASK]"
            elif rng.random() >= 0.5:
                tokens[i] = vocabulary_words[rng.randint(0, len(vocabulary_words) - 1)]
            masked.append((i, original[i]))
    masked.sort()
    return [i for i, _ in masked], [token for _, token in masked]


def instances_of_document(documents, number, vocabulary_words, settings, rng):
    document = documents[number]
    max_tokens = settings.sequence_length - 3
    target = max_tokens if rng.random() >= settings.short_seq_prob else rng.randint(2, max_tokens)
    instances, chunk, length, i = [], [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            tokens_a = [token for sentence in chunk[:a_end] for token in sentence]
            tokens_b = []
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random:
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != number:
                        break
                for sentence in documents[other][rng.randint(0, len(documents[other]) - 1) :]:
                    tokens_b += sentence
                    if len(tokens_b) >= target - len(tokens_a):
                        break
                i -= len(chunk) - a_end
            else:
                tokens_b = [token for sentence in chunk[a_end:] for token in sentence]
            truncate(tokens_a, tokens_b, max_tokens, rng)
            tokens = ["[CLS]", *tokens_a, "[SEP]", *tokens_b, "[SEP]"]
            segments = [0] * (len(tokens_a) + 2) + [1] * (len(tokens_b) + 1)
            positions, labels = mask(tokens, vocabulary_words, settings, rng)
            instances.append((tokens, segments, is_random, positions, labels))
            chunk, length = [], 0
        i += 1
    return instances


def make_instances(paths, vocabulary, settings):
    """All instances: tokens, segment ids, whether B is random, masked positions, masked tokens."""
    rng = random.Random(settings.seed)
    documents = read(paths, vocabulary, rng)
    words = list(vocabulary)
    instances = []
    for _ in range(settings.dupe_factor):
        for number in range(len(documents)):
            instances += instances_of_document(documents, number, words, settings, rng)
    rng.shuffle(instances)
    return instances


def write_instances(instances, vocabulary, settings, path):
    """Padded examples, as Google's reader wants them."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for tokens, segments, is_random, positions, labels in instances:
            padding = [0] * (settings.sequence_length - len(tokens))
            filler = [0] * (settings.max_predictions_per_seq - len(positions))
            integers = {
                "input_ids": [vocabulary[token] for token in tokens] + padding,
                "input_mask": [1] * len(tokens) + padding,
                "segment_ids": segments + padding,
                "masked_lm_positions": positions + filler,
                "masked_lm_ids": [vocabulary[token] for token in labels] + filler,
                "next_sentence_labels": [int(is_random)],
            }
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=values)) for name, values in integers.items()
            }
            features["masked_lm_weights"] = tf.train.Feature(
                float_list=tf.train.FloatList(value=[1.0] * len(positions) + [0.0] * len(filler))
            )
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
