"""Wrong arguments of the recipes: one clear error each, before any work."""

import pytest
from fake_weights import write_hf_folder

import keras_bert_kit as kbk

EXAMPLES = kbk.Examples(["the team", "a robot"], ["sports", "space"])


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    write_hf_folder(folder)
    return kbk.load_pretrained(folder)


def refuse(plan):
    raise AssertionError(f"the run began: {plan}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bert": "folder"}, "bert must be of class Pretrained. Received: bert='folder'. It is what load_pretrained"),
        ({"train": "train.csv"}, "train must be of class Examples. Received: train='train.csv'. Read a file with"),
        ({"train": (["a"], ["x"])}, "train must be of class Examples. Received: train=a tuple"),
        ({"train": None}, "train must be of class Examples. Received: train=None"),
        ({"evaluation": {"a": "x"}}, "evaluation must be of class Examples. Received: evaluation=a dict"),
        ({"batch_size": "8"}, "batch_size must be a whole number, 1 or more. Received: batch_size='8'"),
        ({"epochs": 1.5}, "epochs must be a whole number, 1 or more. Received: epochs=1.5"),
        ({"epochs": 0}, "epochs must be a whole number, 1 or more. Received: epochs=0"),
        ({"max_length": True}, "max_length must be a whole number, 1 or more. Received: max_length=True"),
        ({"learning_rate": "fast"}, "learning_rate must be a number above 0, or None .*Received: learning_rate='fast'"),
        ({"learning_rate": 0.0}, "Received: learning_rate=0.0"),
        ({"learning_rate": float("nan")}, "Received: learning_rate=nan"),
        ({"warmup_share": 10}, "warmup_share must be a number from 0 to 1. Received: warmup_share=10"),
    ],
)
def test_of_fine_tuning(bert, changes, message):
    arguments = {"bert": bert, "train": EXAMPLES, "report": refuse} | changes
    with pytest.raises(ValueError, match=message):
        kbk.finetune_classifier(**arguments)


def test_of_an_evaluation(bert):
    model = kbk.BertClassifier(bert.encoder, 2, ("space", "sports"))
    pack = kbk.recipes.packer_for(bert, 16)
    for arguments, message in (
        ((bert, pack, EXAMPLES), "model must be of class BertClassifier. Received: model=a Pretrained"),
        ((model, bert.tokenizer, EXAMPLES), "pack must be of class BertPacker. Received: pack=a BertTokenizer"),
        ((model, pack, EXAMPLES.texts), "examples must be of class Examples. Received: examples=a list"),
        ((model, pack, EXAMPLES, 0), "batch_size must be a whole number, 1 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            kbk.evaluate_classifier(*arguments)


def test_of_pre_training(bert, tmp_path):
    (tmp_path / "text.txt").write_text("the team\n\na robot\n", encoding="utf-8")
    made = (tmp_path / "text.txt", bert.tokenizer, tmp_path / "data", kbk.PretrainingSettings(sequence_length=16))
    kbk.write_pretraining_data(*made, processes=1, report=lambda line: None)
    batches, model = kbk.PretrainingBatches(tmp_path / "data", 2), bert.pretrainer
    for arguments, message in (
        ((bert, [batches], [1]), "model must be of class BertPretrainer. Received: model=a Pretrained"),
        ((model, batches, [1]), "data must be a list of PretrainingBatches. Received: data=a PretrainingBatches. Give"),
        ((model, ["data"], [1]), r"data\[0\] must be of class PretrainingBatches. Received: data\[0\]='data'"),
        ((model, [batches], 1), "steps must be a list of Integral. Received: steps=1. Give"),
        (
            (model, [batches], [1], "data"),
            "evaluation must be of class PretrainingBatches. Received: evaluation='data'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            kbk.pretrain_bert(*arguments, report=refuse)
    with pytest.raises(ValueError, match="source must be of class Pretrained. Received: source='folder'"):
        kbk.pretrain_bert(model, [batches], [1], source="folder", report=refuse)
