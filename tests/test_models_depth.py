"""Parts of a model by depth: freezing them, rates that fall with depth; what is frozen stays so in files and copies."""

import keras
import numpy as np
import pytest

import keras_bert_kit as kbk
from keras_bert_kit.models import layers_by_depth

IDS = np.array([[2, 5, 3, 0], [2, 6, 7, 3]], "int32")
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS > 0).astype("int32"), "input_type_ids": 0 * IDS}


def encoder():
    sizes = dict(vocab_size=9, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8)
    return kbk.BertEncoder(kbk.BertConfig(**sizes))


def functional(bert):
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS}
    return keras.Model(inputs, keras.layers.Dense(2)(bert(inputs)["pooled_output"]))


def trained(model):
    return [weight.trainable for weight in model.weights]


@pytest.mark.parametrize("make", [functional, lambda bert: kbk.BertClassifier(bert, 2), kbk.BertPretrainer])
@pytest.mark.parametrize(
    "freeze",
    [
        lambda bert: setattr(bert, "trainable", False),
        lambda bert: kbk.freeze(bert, "embeddings", layers=[0]),
        lambda bert: setattr(bert.blocks[1].attention, "trainable", False),
        lambda bert: None,
    ],
)
def test_frozen_stays_frozen_in_files_and_copies(tmp_path, make, freeze):
    """Three of four had all variables trained after `load_model`, under an encoder that said `trainable=False`."""
    bert = encoder()
    freeze(bert)
    model = make(bert)
    model.save(tmp_path / "model.keras")
    for again in (keras.models.load_model(tmp_path / "model.keras"), keras.models.clone_model(model)):
        assert trained(again) == trained(model)
        (found,) = [layer for layer in again.layers if isinstance(layer, kbk.BertEncoder)]
        assert found.trainable == bert.trainable and found.embeddings.trainable == bert.embeddings.trainable
        found.trainable = True
        kbk.unfreeze(found)
        assert all(trained(found))


def test_training_goes_on_where_a_frozen_model_was_saved(tmp_path):
    bert = encoder()
    bert.trainable = False
    model = functional(bert)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(INPUTS, np.array([0, 1]), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert len(again.optimizer.variables) == len(model.optimizer.variables)
    before = [weight.numpy() for weight in again.layers[-2].weights]
    again.fit(INPUTS, np.array([0, 1]), verbose=0)
    for weight, value in zip(again.layers[-2].weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_the_head_of_pretraining_leaves_the_word_table_alone():
    """Its layer of embeddings is the encoder's, which was frozen, thawed and slowed down with the head."""
    model = kbk.BertPretrainer(encoder())
    everything = len(model.trainable_variables)
    kbk.freeze(model, "head")
    assert model.encoder.embeddings.trainable and everything - len(model.trainable_variables) == 2 + 5 + 2
    kbk.freeze(model, "embeddings")
    kbk.unfreeze(model, "head")
    assert not any(weight.trainable for weight in model.encoder.embeddings.weights)
    kbk.unfreeze(model)
    factors = {variable.path.split("/", 1)[1]: factor for variable, factor in kbk.rates_by_depth(model, 0.5)}
    assert len(factors) == everything
    assert factors["embeddings/word_embeddings"] == 1 / 8 and factors["block_0/output/bias"] == 1 / 4
    assert factors["masked_lm/bias"] == factors["next_sentence/dense/bias"] == factors["pooler/dense/bias"] == 1


def test_models_of_ones_own_have_depth_too():
    bert = encoder()
    for model in (functional(bert), functional(kbk.BertClassifier(bert, 3, name="inner").encoder)):
        groups = layers_by_depth(model)
        assert list(groups) == ["embeddings", "block_0", "block_1", "head"]
        held = {id(weight) for layers in groups.values() for layer in layers for weight in layer.weights}
        assert held == {id(weight) for weight in model.weights}
    bert.blocks[1].attention.trainable = False
    kbk.unfreeze(model)
    assert all(trained(model))
    kbk.freeze(model, "embeddings", layers=0)
    assert [bert.embeddings.trainable, *(block.trainable for block in bert.blocks)] == [False, False, True]
    assert len(kbk.rates_by_depth(model, 0.9)) == len(model.trainable_variables)
    for model in (keras.Sequential([keras.layers.Dense(2)]), "a path"):
        with pytest.raises(ValueError, match="model must be a BertEncoder, .* with 0 of them"):
            kbk.freeze(model, "embeddings")
