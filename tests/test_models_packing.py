"""Packed rows: each sequence gives the numbers that it gives alone, forward and backward, on one replica and on two."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit import BertConfig, BertEncoder, BertPretrainer
from keras_bert_kit.data.packing import pack_sequences
from keras_bert_kit.layers import separate_sequences
from keras_bert_kit.training import PretrainingLoss, Trainer, make_strategy

VOCABULARY, ROW, MASKED = 50, 24, 3
LENGTHS = [9, 24, 5, 13, 7, 11, 6, 17, 8, 10, 5]  # 115 tokens, in five rows of 24 with 5 of padding


def make_pretrainer(dtype="float32", max_position_embeddings=ROW, num_layers=2):
    keras.utils.set_random_seed(5)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=num_layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=max_position_embeddings,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
    )
    return BertPretrainer(BertEncoder(config, dtype=dtype))


def make_sequences():
    """Of each length: ids, segments, positions of 1 to 3 masked words, their labels, the label of the next sentence."""
    rng = np.random.default_rng(0)
    for number, length in enumerate(LENGTHS):
        masked = np.sort(rng.choice(np.arange(1, length), number % MASKED + 1, replace=False))
        segments = (np.arange(length) > length // 2).astype(int)
        yield (
            rng.integers(1, VOCABULARY, length),
            segments,
            masked,
            rng.integers(0, VOCABULARY, len(masked)),
            number % 2,
        )


def padded(rows, filler=0):
    width = max(map(len, rows))
    return np.array([list(row) + [filler] * (width - len(row)) for row in rows], "int32")


def batch_of(rows):
    """Inputs and labels of rows, each a list of numbers of sequences; one each is an ordinary batch, with more keys."""
    made, sequences = {}, list(make_sequences())
    for row in rows:
        starts = np.cumsum([0] + [LENGTHS[number] for number in row])
        parts = [sequences[number] for number in row]
        values = {
            "input_word_ids": np.concatenate([ids for ids, *_ in parts]),
            "input_mask": np.ones(starts[-1]),
            "input_type_ids": np.concatenate([segments for _, segments, *_ in parts]),
            "masked_lm_positions": np.concatenate([part[2] + at for part, at in zip(parts, starts, strict=False)]),
            "input_sequence_ids": np.repeat(np.arange(len(row)) + 1, np.diff(starts)),
            "next_sentence_positions": starts[:-1],
            "mlm_logits": np.concatenate([part[3] for part in parts]),
            "nsp_logits": [part[4] for part in parts],
        }
        for name, value in values.items():
            made.setdefault(name, []).append(value)
    labels = {name: padded(made.pop(name), -100) for name in ("mlm_logits", "nsp_logits")}
    return {name: padded(values) for name, values in made.items()}, labels


def unpacked():
    inputs, labels = batch_of([[number] for number in range(len(LENGTHS))])
    for name in ("input_sequence_ids", "next_sentence_positions"):
        del inputs[name]
    return inputs, labels | {"nsp_logits": labels["nsp_logits"][:, 0]}


def packed():
    return batch_of(pack_sequences(LENGTHS, ROW))


def sequence_losses(outputs, labels, rows):
    """(losses of the masked words, loss of the next sentence) of each sequence, in the order of their numbers."""
    found = {}
    for task in ("mlm", "nsp"):
        logits = np.asarray(outputs[f"{task}_logits"], "float64")
        logits = logits.reshape(len(rows), -1, logits.shape[-1])
        wanted = np.asarray(labels[f"{task}_logits"]).reshape(len(rows), -1)
        own = np.take_along_axis(logits, np.maximum(wanted, 0)[..., None], -1)[..., 0]
        found[task] = np.log(np.exp(logits).sum(-1)) - own
    losses = {}
    for place, row in enumerate(rows):
        counts = [number % MASKED + 1 for number in row]
        for n, (number, end) in enumerate(zip(row, np.cumsum(counts), strict=True)):
            losses[number] = found["mlm"][place, end - counts[n] : end], found["nsp"][place, n]
    return [losses[number] for number in range(len(LENGTHS))]


def call_in(way, model):
    return {"eager": model, "graph": tf.function(model), "XLA": tf.function(model, jit_compile=True)}[way]


@pytest.mark.parametrize("way", ["eager", "graph", "XLA"])
def test_every_sequence_has_the_losses_that_it_has_alone(way):
    model = make_pretrainer()
    rows, alone = pack_sequences(LENGTHS, ROW), [[number] for number in range(len(LENGTHS))]
    assert len(rows) == 5 and max(map(len, rows)) > 2
    (inputs, labels), (one_inputs, one_labels) = packed(), unpacked()
    outputs, one_outputs = call_in(way, model)(inputs), model(one_inputs)
    ours, theirs = sequence_losses(outputs, labels, rows), sequence_losses(one_outputs, one_labels, alone)
    for (mlm, nsp), (one_mlm, one_nsp) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mlm, one_mlm, atol=1e-5)
        assert nsp == pytest.approx(one_nsp, abs=1e-5)


def test_one_sequence_a_row_is_the_ordinary_batch():
    model, (inputs, _) = make_pretrainer(), unpacked()
    firsts = np.zeros((len(LENGTHS), 1), "int32")
    rows = inputs | {"input_sequence_ids": inputs["input_mask"], "next_sentence_positions": firsts}
    outputs, ordinary = model(rows), model(inputs)
    np.testing.assert_allclose(outputs["mlm_logits"], ordinary["mlm_logits"], atol=1e-6)
    np.testing.assert_allclose(outputs["nsp_logits"][:, 0], ordinary["nsp_logits"], atol=1e-6)
    np.testing.assert_allclose(outputs["pooled_output"][:, 0], ordinary["pooled_output"], atol=1e-6)


def gradients(model, inputs, labels):
    loss = PretrainingLoss()
    with tf.GradientTape() as tape:
        sums, counts = loss.sums(labels, model(inputs, training=True)), loss.counts(labels)
        total = sum(sums[name] / counts[name] for name in loss.parts)
    values = tape.gradient(total, [variable.value for variable in model.trainable_variables])
    return float(total), [np.asarray(tf.cast(value, tf.float32)) for value in values]


@pytest.mark.parametrize(("dtype", "checkpointing"), [("float32", False), ("float32", True), ("mixed_bfloat16", False)])
def test_a_packed_batch_has_the_gradients_of_the_unpacked_one(dtype, checkpointing):
    model = make_pretrainer(dtype)
    model.encoder.gradient_checkpointing = checkpointing
    tolerance = 1e-5 if dtype == "float32" else 0.02
    (loss, ours), (one_loss, theirs) = gradients(model, *packed()), gradients(model, *unpacked())
    assert loss == pytest.approx(one_loss, abs=tolerance)
    for variable, our, their in zip(model.trainable_variables, ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, atol=tolerance, err_msg=variable.path)


def test_nothing_passes_between_the_sequences_of_a_row():
    """Scores are exactly 0, positions begin anew, and other words in one sequence change nothing in its neighbours."""
    model, (inputs, _) = make_pretrainer(), packed()
    ids = inputs["input_sequence_ids"]
    outputs = model.encoder(inputs, return_attention_scores=True)
    apart = (ids[:, :, None] != ids[:, None, :]) & (ids[:, :, None] > 0)
    assert apart.any()
    for scores in outputs["attention_scores"]:
        assert np.all(np.moveaxis(scores.numpy(), 1, -1)[apart] == 0.0)
        np.testing.assert_allclose(scores.numpy().sum(-1), 1.0, atol=1e-5)
    changed = inputs | {"input_word_ids": np.where(ids == 2, 1, inputs["input_word_ids"])}
    after = model.encoder(changed)["sequence_output"].numpy()
    np.testing.assert_array_equal(after[ids == 1], outputs["sequence_output"].numpy()[ids == 1])
    assert np.abs(after[ids == 2] - outputs["sequence_output"].numpy()[ids == 2]).max() > 0.01


def test_positions_begin_at_zero_in_each_sequence():
    ids = tf.constant([[1, 1, 2, 2, 2, 0], [7, 4, 4, 4, 4, 4]])
    mask, positions = separate_sequences(ids, ids > 0)
    np.testing.assert_array_equal(positions[:, :5], [[0, 1, 0, 1, 2], [0, 0, 1, 2, 3]])
    wanted = (ids[:, :, None] == ids[:, None, :]) & (ids[:, None, :] > 0)
    np.testing.assert_array_equal(mask, wanted)


def test_a_row_may_be_longer_than_the_position_table_but_no_sequence():
    model = make_pretrainer(max_position_embeddings=8)
    ids = np.ones((1, 16), "int32")
    inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": 0 * ids}
    halves = np.repeat([[1, 2]], 8, axis=1)
    assert model.encoder(inputs | {"input_sequence_ids": halves})["sequence_output"].shape == (1, 16, 16)
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)positions must lie in .*position table"):
        model.encoder(inputs | {"input_sequence_ids": np.repeat([[1, 2]], [9, 7], axis=1)})


def trained(data, replicas):
    strategy = make_strategy("mirrored", replicas) if replicas > 1 else make_strategy("cpu")
    with strategy.scope():
        model, optimizer = make_pretrainer(num_layers=1), keras.optimizers.SGD(0.1)
    trainer = Trainer(model, optimizer, PretrainingLoss(), strategy=strategy)
    return trainer.fit(tf.data.Dataset.from_tensors(data), 5).records


def test_training_on_packed_rows_is_training_on_sequences():
    """Five steps on all sequences: packed on one replica and on two (3 and 2 rows), and unpacked."""
    records = trained(unpacked(), 1)
    for replicas in (1, 2):
        ours = trained(packed(), replicas)
        for record, expected in zip(ours, records, strict=True):
            for name in ("loss", "mlm_loss", "nsp_loss", "mlm_accuracy", "nsp_accuracy", "gradient_norm", "tokens"):
                assert record[name] == pytest.approx(expected[name], abs=1e-5), name
        assert ours[0]["padding_share"] == pytest.approx(1 - sum(LENGTHS) / (5 * ROW))


def test_packed_rows_need_the_places_of_their_texts():
    inputs, _ = packed()
    del inputs["next_sentence_positions"]
    with pytest.raises(ValueError, match="missing: next_sentence_positions"):
        make_pretrainer()(inputs)


def test_outputs_of_packed_rows_carry_no_mask_of_pairs():
    """Keras puts the mask of an output on its loss, where only padding is meant."""
    model, (inputs, _) = make_pretrainer(), packed()
    for value in tf.nest.flatten(model.encoder(inputs)) + tf.nest.flatten(model(inputs)):
        assert getattr(value, "_keras_mask", None) is None
    assert model.encoder(unpacked()[0])["sequence_output"]._keras_mask.shape == (len(LENGTHS), ROW)
