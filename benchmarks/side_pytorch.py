"""Transformers on PyTorch in the benchmarks: a side, see side.py.

As its users run it: `BertTokenizerFast`, padding to the longest text of a batch, the default attention (fused, "sdpa"),
PyTorch's fused AdamW. bfloat16 is autocast in training, and weights in bfloat16 for answers, which is faster there.
"""

import functools

import numpy as np
import side
import torch
from transformers import (
    BertConfig,
    BertForPreTraining,
    BertForSequenceClassification,
    BertTokenizerFast,
    logging,
)


def use_threads(job):
    side.use_cores(job["threads"])
    torch.set_num_threads(job["threads"])
    torch.manual_seed(0)
    logging.set_verbosity_error()


def config_of(job, **more):
    return BertConfig(**job["config"], hidden_act={"erf": "gelu", "tanh": "gelu_new"}[job["gelu"]], **more)


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def new_update(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5, eps=1e-6, weight_decay=0.01, fused=True)

    def update(loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return update


def tokenizer_of(job):
    tokenizer = BertTokenizerFast(vocab=job["vocab"], do_lower_case=True)
    settings = {"padding": True, "truncation": True, "max_length": job["max_length"], "return_tensors": "pt"}
    return lambda texts: tokenizer(texts, **settings)


def finetune(job):
    """From raw texts to trained steps."""
    use_threads(job)
    if "weights" in job:
        model = BertForSequenceClassification.from_pretrained(job["weights"]).train()
    else:
        model = BertForSequenceClassification(config_of(job, num_labels=len(job["class_names"]))).train()
    tokenize, update = tokenizer_of(job), new_update(model)

    def train(order):
        texts, labels = job["examples"][order]
        for first in range(0, len(texts), job["batch_size"]):
            part = slice(first, first + job["batch_size"])
            inputs = tokenize(texts[part])
            with torch.autocast("cpu", torch.bfloat16):
                loss = update(model(**inputs, labels=torch.tensor(labels[part])).loss)
        return {"loss": loss}

    texts, _ = next(iter(job["examples"].values()))
    tokens = int(tokenize(texts)["attention_mask"].sum())
    return {"PyTorch bfloat16": train}, {"parameters": count(model), "tokens": tokens}


def pretrain(job):
    """Steps of pre-training over the batches of a file."""
    use_threads(job)
    model = BertForPreTraining(config_of(job)).train()
    update = new_update(model)
    with np.load(job["batches"]) as file:
        batches = [{key.split("/")[1]: file[key] for key in file if key.startswith(f"{i}/")} for i in file["numbers"]]

    def train():
        for batch in batches:
            ids = torch.from_numpy(batch["input_word_ids"]).long()
            labels = torch.full_like(ids, -100)
            rows, columns = np.nonzero(batch["mlm_labels"] != -100)
            masked = torch.from_numpy(batch["mlm_labels"][rows, columns]).long()
            labels[rows, batch["masked_lm_positions"][rows, columns]] = masked
            with torch.autocast("cpu", torch.bfloat16):
                outputs = model(
                    ids,
                    torch.from_numpy(batch["input_mask"]),
                    torch.from_numpy(batch["input_type_ids"]).long(),
                    labels=labels,
                    next_sentence_label=torch.from_numpy(batch["nsp_labels"]).long(),
                )
            loss = update(outputs.loss)
        return {"loss": loss}

    return {"PyTorch bfloat16": train}, {"parameters": count(model)}


def answers(job):
    """From raw texts to probabilities, with the weights of job["folder"]/hf."""
    use_threads(job)
    tokenize = tokenizer_of(job)

    @torch.inference_mode()
    def answer(model, batches):
        rows = [model(**tokenize(texts)).logits.float().softmax(-1) for texts in batches]
        return {"probabilities": torch.cat(rows).numpy()}

    contenders, dtypes = {}, {"PyTorch bfloat16": torch.bfloat16, "PyTorch float32": torch.float32}
    for name, dtype in side.asked_for(job, dtypes).items():
        model = BertForSequenceClassification.from_pretrained(f"{job['folder']}/hf", dtype=dtype).eval()
        contenders[name] = functools.partial(answer, model)
    return contenders, {"parameters": count(model)}


if __name__ == "__main__":
    side.run({task.__name__: task for task in (finetune, pretrain, answers)})
