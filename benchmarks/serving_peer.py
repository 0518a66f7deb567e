"""The other side of serving.py: PyTorch and ONNX Runtime, in an environment of their own. Started by it.

    python serving_peer.py FOLDER THREADS LENGTH          a folder as Transformers writes it

Says {"ready": names} on standard output, then answers each line {"name": …, "texts": […]} with {"seconds": …,
"probabilities": rows}. The clock runs from the strings to the probabilities, tokenizer included, as on our side.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from transformers import AutoModelForSequenceClassification, BertTokenizerFast, logging

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_onnx(model, folder):
    """Writes the model as ONNX Runtime's own guide says: exported, fused for BERT, then int8. Returns both paths."""
    raw, fused, int8 = (folder / f"{name}.onnx" for name in ("raw", "fused", "int8"))
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in INPUTS)
    axes = {name: {0: "batch", 1: "sequence"} for name in INPUTS} | {"logits": {0: "batch"}}
    arguments = {"input_names": list(INPUTS), "output_names": ["logits"], "dynamic_axes": axes}
    torch.onnx.export(model, example, raw, opset_version=17, do_constant_folding=True, dynamo=False, **arguments)
    config = model.config
    sizes = {"num_heads": config.num_attention_heads, "hidden_size": config.hidden_size}
    optimized = optimizer.optimize_model(str(raw), model_type="bert", **sizes)
    print("fusions by ONNX Runtime:", optimized.get_fused_operator_statistics(), file=sys.stderr)
    optimized.save_model_to_file(str(fused))
    settings = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # of what the fused operators give
    quantize_dynamic(fused, int8, weight_type=QuantType.QInt8, per_channel=True, extra_options=settings)
    return fused, int8


def onnx_runner(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    wanted = {tensor.name for tensor in session.get_inputs()}

    def run(inputs):
        (logits,) = session.run(["logits"], {name: inputs[name].numpy() for name in wanted})
        return torch.from_numpy(logits)

    return run


def runners(folder, threads, scratch):
    """{name: function from the tokenizer's tensors to logits}."""
    # In eager attention, which ONNX Runtime knows how to fuse.
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    fused, int8 = write_onnx(model, scratch)
    half = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.bfloat16).eval()
    return {
        "ONNX Runtime float32": onnx_runner(fused, threads),
        "ONNX Runtime int8": onnx_runner(int8, threads),
        "Transformers bfloat16": lambda inputs: half(**inputs).logits.float(),
    }


def main():
    folder, threads, length = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(threads)
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as scratch, torch.inference_mode():
        functions = runners(folder, threads, Path(scratch))
        print(json.dumps({"ready": list(functions)}), file=answers, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            start = time.perf_counter()
            inputs = tokenizer(request["texts"], padding=True, truncation=True, max_length=length, return_tensors="pt")
            probabilities = functions[request["name"]](inputs).softmax(-1)
            seconds = time.perf_counter() - start
            answer = {"seconds": seconds, "probabilities": probabilities.tolist()}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
