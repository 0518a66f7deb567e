"""keras_bert_kit in the benchmarks: a side, see side.py. Its tasks are the functions of TASKS."""

import functools
import json
import time
from pathlib import Path

import keras
import numpy as np
import side
import tensorflow as tf

import keras_bert_kit as kbk
from keras_bert_kit.recipes import packer_for

MATMUL_TOKENS = 1024  # about a batch of 16 to 32 texts without padding
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


def use_threads(job):
    side.use_cores(job["threads"])
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    keras.utils.set_random_seed(0)


def new_classifier(job, dtype, **config):
    config = kbk.BertConfig(**job["config"] | config, hidden_act=f"gelu_{job['gelu']}")
    classifier = kbk.BertClassifier(kbk.BertEncoder(config, dtype=dtype), len(job["class_names"]), job["class_names"])
    classifier({name: np.ones([1, 4], np.int32) for name in INPUTS})
    for variable in classifier.trainable_variables:
        if len(variable.shape) == 1:  # a new bias is 0, which an optimizer of graphs would leave out
            variable.assign_add(tf.random.normal(variable.shape, stddev=0.02))
    return classifier


def new_packer(job):
    tokenizer = kbk.BertTokenizer.from_vocab_file(job["vocab"])
    return kbk.BertPacker(tokenizer, sequence_length=None, max_sequence_length=job["max_length"])


def new_step(model, loss):
    """The step of the `Trainer`: forward, backward, clipping, AdamW. Returns {name: number}."""
    trainer = kbk.Trainer(model, kbk.create_optimizer(3e-5, 10**6, 0), loss)
    compiled = tf.function(trainer.step, reduce_retracing=True, autograph=False)  # as the Trainer does

    def step(inputs, labels):
        numbers = compiled((inputs, labels)).numpy().tolist()
        return dict(zip(trainer.step.names, numbers, strict=True))

    return step


def finetune(job):
    """From raw texts to trained steps, in the recipe's own data set."""
    use_threads(job)
    if "weights" in job:
        bert = kbk.load_pretrained(job["weights"], dtype="mixed_bfloat16")
        classifier, pack = bert.classifier, packer_for(bert, job["max_length"])
    else:
        classifier, pack = new_classifier(job, "mixed_bfloat16"), new_packer(job)
    step = new_step(classifier, kbk.CrossEntropy(job["class_names"]))
    batches = {}
    for order, (texts, labels) in job["examples"].items():
        examples = kbk.Examples(texts, [job["class_names"][label] for label in labels])
        batches[order] = kbk.classification_dataset(examples, pack, job["class_names"], job["batch_size"])

    def train(order):
        for inputs, labels in batches[order]:
            logs = step(inputs, labels)
        return {"loss": logs["loss"]}

    tokens = int(sum(tf.reduce_sum(inputs["input_mask"]) for inputs, _ in batches[order]))
    return {"kit bfloat16": train}, {"parameters": classifier.count_params(), "tokens": tokens}


def pretrain(job):
    """Steps of pre-training over the batches of a file."""
    use_threads(job)
    config = kbk.BertConfig(**job["config"], hidden_act=f"gelu_{job['gelu']}")
    model = kbk.BertPretrainer(kbk.BertEncoder(config, dtype="mixed_bfloat16"))
    step = new_step(model, kbk.PretrainingLoss())
    with np.load(job["batches"]) as file:
        batches = [{key.split("/")[1]: file[key] for key in file if key.startswith(f"{i}/")} for i in file["numbers"]]

    def train():
        for batch in batches:
            inputs = {key: tf.constant(batch[key]) for key in batch if key.startswith(("input", "masked"))}
            labels = {"mlm_logits": tf.constant(batch["mlm_labels"]), "nsp_logits": tf.constant(batch["nsp_labels"])}
            logs = step(inputs, labels)
        return {"loss": logs["loss"]}

    return {"kit bfloat16": train}, {"parameters": model.count_params()}


def export(job):
    """Writes what `answers` and the peers read: exported models in job["folder"], and the weights as "hf"."""
    use_threads(job)
    folder, pack, versions = Path(job["folder"]), new_packer(job), {}
    for name, dtype in (("kit bfloat16", "mixed_bfloat16"), ("kit float32", "float32")):
        keras.utils.set_random_seed(0)
        classifier = new_classifier(job, dtype)
        version = kbk.export_for_serving(classifier, pack, folder / dtype)
        versions[name] = str(version)
        about = json.loads((version / "assets.extra" / "kit.json").read_text(encoding="utf-8"))
        if job["constants"]:  # and the other kind of weights, which is not the default of this dtype
            other = {"constants": "variables", "variables": "constants"}[about["weights"]]
            version = kbk.export_for_serving(classifier, pack, folder / f"{dtype}-{other}", freeze=other == "constants")
            versions[f"{name}, {other}"] = str(version)
    in_int8 = {"quantize": "int8", "calibration_texts": job["calibration_texts"]}
    versions["kit int8"] = str(kbk.export_for_serving(classifier, pack, folder / "int8", **in_int8))
    kbk.save_pretrained(classifier, folder / "hf", tokenizer=pack.tokenizer, format="hf")
    if job["as_server"]:
        versions["TF-Hub's style"] = str(folder / "tf_hub_style")
        write_tf_hub_style(classifier, pack.tokenizer, job["max_length"], versions["TF-Hub's style"])
    return {}, {"versions_written": versions, "parameters": classifier.count_params()}


def write_tf_hub_style(classifier, tokenizer, max_length, folder):
    """A SavedModel as with hub.KerasLayer twice: preprocessing to the full length, then an encoder with variables."""
    pack, module = kbk.BertPacker(tokenizer, max_length), tf.Module()
    module.weights, module.pack = [variable.value for variable in classifier.variables], pack

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        pooled = classifier.encoder(pack(text), training=False)["pooled_output"]  # of every token, padding too
        return {"probabilities": tf.nn.softmax(tf.cast(classifier.dense(pooled), tf.float32))}

    tf.saved_model.save(module, folder, signatures=serve)


def answers(job):
    """From raw texts to probabilities: by `Predictor`, or in sessions, as a server runs a SavedModel."""
    use_threads(job)

    def of_predictor(predictor, batches):
        predictions = [prediction for texts in batches for prediction in predictor.predict(texts, len(texts))]
        return {"probabilities": [list(prediction.probabilities.values()) for prediction in predictions]}

    def of_server(answer, batches):
        return {"probabilities": np.concatenate([answer(batch) for batch in batches])}

    def contender(path):
        if job["as_server"]:
            return functools.partial(of_server, in_session(path, job["threads"]))
        return functools.partial(of_predictor, kbk.Predictor(path))

    return {name: contender(path) for name, path in side.asked_for(job, job["versions"]).items()}, {}


def in_session(folder, threads):
    """A SavedModel as TF Serving loads it, from texts to probabilities: a session optimizes the whole of its graph."""
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
    with tf.Graph().as_default() as graph:
        session = tf.compat.v1.Session(graph=graph, config=config)
        signature = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
    return session.make_callable(signature.outputs["probabilities"].name, [signature.inputs["text"].name])


def cost(job):
    """Of a step and of a forward pass, for tensors of any size: for the suite `scaling`."""
    use_threads(job)
    classifier = new_classifier(job, "mixed_bfloat16")
    step = new_step(classifier, kbk.CrossEntropy())
    forward = tf.function(lambda inputs: classifier(inputs, training=False), reduce_retracing=True)

    def measured(work, batch_size, length, seconds):
        ids = tf.random.uniform([batch_size, length], 1000, job["config"]["vocab_size"], tf.int32, seed=0)
        inputs = dict(zip(INPUTS, (ids, tf.ones_like(ids), tf.zeros_like(ids)), strict=True))
        work(inputs, tf.zeros([batch_size], tf.int32))  # warms up
        start, count = time.perf_counter(), 0
        while not count or time.perf_counter() - start < seconds:
            work(inputs, tf.zeros([batch_size], tf.int32))
            count += 1
        return {"seconds": (time.perf_counter() - start) / count}

    works = {"training": step, "inference": lambda inputs, labels: forward(inputs).numpy()}
    return {name: functools.partial(measured, work) for name, work in works.items()}, {}


def matmul(job):
    """The machine's own rate: the products of an encoder block in bfloat16, nothing else. Operations per second."""
    use_threads(job)
    hidden, wide = job["config"]["hidden_size"], job["config"]["intermediate_size"]
    sizes = [(hidden, 3 * hidden), (hidden, hidden), (hidden, wide), (wide, hidden)]
    operations = 2 * MATMUL_TOKENS * sum(rows * columns for rows, columns in sizes)
    pairs = [
        tuple(tf.cast(tf.random.normal(shape), tf.bfloat16) for shape in ([MATMUL_TOKENS, rows], [rows, columns]))
        for rows, columns in sizes
    ]
    product = tf.function(tf.matmul, reduce_retracing=True)

    def run():
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < job["seconds"]:
            results = [product(*pair) for pair in pairs]
            count += 1
        results[-1].numpy()
        return {"rate": count * operations / (time.perf_counter() - start)}

    run()
    return {"matmul": run}, {}


TASKS = {task.__name__: task for task in (finetune, pretrain, export, answers, cost, matmul)}

if __name__ == "__main__":
    side.run(TASKS)
