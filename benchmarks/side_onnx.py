"""ONNX Runtime in the benchmarks: a side, see side.py. Needs torch, transformers, onnx and onnxruntime.

The model of job["folder"]/hf as ONNX Runtime's own guide says: exported, fused for BERT, then int8 by dynamic
quantization.
"""

import functools
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import side
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from transformers import BertForSequenceClassification, BertTokenizerFast, logging

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_onnx(model, folder):
    """Returns the paths of the float32 and of the int8 model."""
    raw, fused, int8 = (folder / f"{name}.onnx" for name in ("raw", "fused", "int8"))
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in INPUTS)
    axes = {name: {0: "batch", 1: "sequence"} for name in INPUTS} | {"logits": {0: "batch"}}
    arguments = {"input_names": list(INPUTS), "output_names": ["logits"], "dynamic_axes": axes}
    torch.onnx.export(model, example, raw, opset_version=17, do_constant_folding=True, dynamo=False, **arguments)
    sizes = {"num_heads": model.config.num_attention_heads, "hidden_size": model.config.hidden_size}
    optimized = optimizer.optimize_model(str(raw), model_type="bert", **sizes)
    print("fusions by ONNX Runtime:", optimized.get_fused_operator_statistics(), file=sys.stderr)
    optimized.save_model_to_file(str(fused))
    settings = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # of what the fused operators give
    quantize_dynamic(fused, int8, weight_type=QuantType.QInt8, per_channel=True, extra_options=settings)
    return fused, int8


def new_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def answers(job):
    """From raw texts to probabilities."""
    side.use_cores(job["threads"])
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    folder = Path(job["folder"])
    tokenizer = BertTokenizerFast.from_pretrained(folder / "hf")
    # In eager attention, which ONNX Runtime knows how to fuse.
    model = BertForSequenceClassification.from_pretrained(folder / "hf", attn_implementation="eager").eval()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    settings = {"padding": True, "truncation": True, "max_length": job["max_length"], "return_tensors": "np"}

    def answer(session, batches):
        wanted, rows = {tensor.name for tensor in session.get_inputs()}, []
        for texts in batches:
            inputs = tokenizer(texts, **settings)
            rows += session.run(["logits"], {name: inputs[name].astype(np.int64) for name in wanted})
        logits = np.exp(np.concatenate(rows))
        return {"probabilities": logits / logits.sum(-1, keepdims=True)}

    with torch.inference_mode():
        paths = write_onnx(model, folder)
    names = ("ONNX Runtime float32", "ONNX Runtime int8")
    contenders = {
        name: functools.partial(answer, new_session(path, job["threads"]))
        for name, path in zip(names, paths, strict=True)
    }
    return contenders, {"parameters": parameters}


if __name__ == "__main__":
    side.run({"answers": answers})
