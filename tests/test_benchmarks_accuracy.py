"""benchmarks/accuracy.py trains both ways, and the plain way is plain."""

import sys
from pathlib import Path

import pytest

import keras_bert_kit as kbk
from keras_bert_kit.layers import TokenLayout

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import accuracy

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "goal", "cup", "bank", "share", "the"]


@pytest.mark.slow
def test_both_ways_learn_and_the_plain_one_computes_padding(tmp_path, monkeypatch, capsys):
    config = {"vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    encoder = kbk.BertEncoder(kbk.BertConfig(**config, num_attention_heads=2))
    kbk.save_pretrained(encoder, tmp_path / "model", tokenizer=kbk.BertTokenizer(WORDS))
    sport, business = ["goal the", "cup the the cup", "goal"], ["bank the", "share the the bank", "share"]
    rows = [f"sport,{text}" for text in sport * 32] + [f"business,{text}" for text in business * 32]
    Path(tmp_path, "news.csv").write_text("\n".join(["label,text", *rows]) + "\n", encoding="utf-8")

    dtypes, padded, load = [], [], kbk.load_pretrained

    def load_pretrained(source, dtype):
        dtypes.append(dtype)
        return load(source, dtype=dtype)

    class RecordedLayout(TokenLayout):
        def __init__(self, *shape):
            padded.append(dtypes[-1])
            super().__init__(*shape)

    monkeypatch.setattr(accuracy, "TokenLayout", RecordedLayout)
    monkeypatch.setattr(accuracy, "default_learning_rate", lambda config: 1e-2)
    monkeypatch.setattr(accuracy.kbk, "load_pretrained", load_pretrained)
    news = str(tmp_path / "news.csv")
    arguments = ["--source", str(tmp_path / "model"), "--train", news, "--eval", news, "--seeds", "2", "--epochs", "8"]
    monkeypatch.setattr(sys, "argv", ["accuracy.py", *arguments])
    assert accuracy.main() == 0
    assert dtypes == ["mixed_bfloat16", "mixed_bfloat16", "float32"] and set(padded) == {"float32"}
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if line.startswith(("kit ", "plain "))]
    assert [row[:2] for row in rows[:3]] == [["kit", "1"], ["kit", "2"], ["plain", "1"]]
    assert all(float(share) == 1.0 for *_, share in rows[:3])
