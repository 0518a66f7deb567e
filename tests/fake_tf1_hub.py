"""A small TF1 module in the format of `hub.Module`, with a BERT graph of its own, as google-research/bert builds it.

The SavedModel holds two graphs, with no tag and with the tag `train`; signatures `tokens`, `tokenization_info` and
`mlm`; the list of assets as a collection; and variables saved by a TF1 saver, without a graph of objects.
"""

import numpy as np
import tensorflow as tf
from fake_checkpoints import fake_bert, google_array, google_name
from fake_weights import VOCABULARY
from tensorflow.core.protobuf.meta_graph_pb2 import AssetFileDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

tf1 = tf.compat.v1


def write_tf1_module(path, *, prefix="", lowercase=True, sequence=None, heads=("mlm",), changes=(), **config):
    """Writes a module; returns what `reference.Reference` takes: tensors under Hugging Face's names, and the config.

    Args:
        path: folder.
        prefix: what stands before the names of variables: "" or "module/".
        lowercase: what `tokenization_info` says.
        sequence: int, or None for a length that is known at run time only, which makes shapes of several constants.
        heads: ("mlm",) or ().
        changes: functions that change the `MetaGraphDef` of a graph before it is written.
        **config: keys of the config.
    """
    tensors, config = fake_bert(heads, **config)
    arrays = {prefix + google_name(name): google_array(name, array) for name, array in tensors.items()}
    (path / "assets").mkdir(parents=True)
    (path / "assets/vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
    model = SavedModel(saved_model_schema_version=1)
    for tags in ([], ["train"]):
        with tf.Graph().as_default() as graph:
            signatures = Module(arrays, prefix, config, sequence, lowercase).signatures()
            meta_graph = tf1.train.export_meta_graph(strip_default_attrs=True)
            if not tags:
                with tf1.Session(graph=graph) as session:
                    session.run(tf1.global_variables_initializer())
                    saver = tf1.train.Saver()
                    saver.save(session, str(path / "variables/variables"), write_meta_graph=False, write_state=False)
        meta_graph.meta_info_def.tags.extend(tags)
        for name, signature in signatures.items():
            meta_graph.signature_def[name].CopyFrom(signature)
        asset = AssetFileDef(filename="vocab.txt")
        asset.tensor_info.name = signatures["tokenization_info"].outputs["vocab_file"].name
        meta_graph.collection_def["saved_model_assets"].any_list.value.add().Pack(asset)
        for change in changes:
            change(meta_graph)
        model.meta_graphs.append(meta_graph)
    (path / "saved_model.pb").write_bytes(model.SerializeToString())
    (path / "tfhub_module.pb").write_bytes(b"\x08\x03")
    return tensors, config


def run_tf1_module(path, signature, inputs):
    """What the module itself computes: its graph without tags, run in a session of TF1."""
    model = SavedModel.FromString((path / "saved_model.pb").read_bytes())
    (meta_graph,) = [graph for graph in model.meta_graphs if not graph.meta_info_def.tags]
    signature = meta_graph.signature_def[signature]
    with tf.Graph().as_default(), tf1.Session() as session:
        saver = tf1.train.import_meta_graph(meta_graph)
        saver.restore(session, str(path / "variables/variables"))
        fed = {signature.inputs[name].name: array for name, array in inputs.items()}
        return session.run({name: tensor.name for name, tensor in signature.outputs.items()}, fed)


class Module:
    """The graph. Each method makes nodes in the scopes that google-research/bert's modeling.py has."""

    def __init__(self, arrays, prefix, config, sequence, lowercase):
        self.arrays, self.prefix, self.config = arrays, prefix, config
        self.sequence, self.lowercase = sequence, lowercase

    def signatures(self):
        """Makes the whole graph; returns {name of a signature: SignatureDef}."""
        names = ("input_ids", "input_mask", "segment_ids")
        inputs = {name: tf1.placeholder(tf.int32, (None, self.sequence), name) for name in names}
        with tf1.variable_scope(f"{self.prefix}bert"):
            states = self.encode(*inputs.values())
            with tf1.variable_scope("pooler"):
                pooled = tf.tanh(self.dense(states[:, 0], "dense"))
        outputs = {"sequence_output": states, "pooled_output": pooled}
        vocabulary, lowercase = tf1.constant("SAVEDMODEL-ASSET", name="vocab_file"), tf1.constant(self.lowercase)
        signatures = {
            "tokens": signature_of(inputs, outputs),
            "tokenization_info": signature_of({}, {"vocab_file": vocabulary, "do_lower_case": lowercase}),
        }
        if f"{self.prefix}cls/predictions/output_bias" in self.arrays:
            inputs["mlm_positions"] = tf1.placeholder(tf.int32, (None, None), "mlm_positions")
            with tf1.variable_scope(f"{self.prefix}cls"):
                logits = self.mlm_logits(states, inputs["mlm_positions"])
            signatures["mlm"] = signature_of(inputs, outputs | {"mlm_logits": logits})
        return signatures

    def variable(self, name):
        """The variable of that name in the present scope, with the value that the array of its full name has."""
        full_name = f"{tf1.get_variable_scope().name}/{name}"
        return tf1.get_variable(name, initializer=self.arrays[full_name], use_resource=False)

    def dense(self, x, name, activation=None):
        with tf1.variable_scope(name):
            x = tf.nn.bias_add(tf.matmul(x, self.variable("kernel")), self.variable("bias"))
            return x if activation is None else activation(x)

    def layer_norm(self, x):
        with tf1.variable_scope("LayerNorm"):
            mean, variance = tf1.nn.moments(x, [-1], keep_dims=True)
            gamma, beta = self.variable("gamma"), self.variable("beta")
            return tf.nn.batch_normalization(x, mean, variance, beta, gamma, self.config["layer_norm_eps"])

    def activation(self, x):
        kind = self.config["hidden_act"]
        if kind == "gelu_new":
            return x * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))
        if kind == "gelu":
            return 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))
        return {"relu": tf.nn.relu, "tanh": tf.tanh, "silu": tf.nn.silu}[kind](x)

    def encode(self, ids, mask, types):
        batch, sequence = tf.shape(ids)[0], self.sequence or tf.shape(ids)[1]
        with tf1.variable_scope("embeddings"):
            x = tf.gather(self.variable("word_embeddings"), ids)
            x += tf.gather(self.variable("token_type_embeddings"), types)
            x = self.layer_norm(x + self.variable("position_embeddings")[:sequence])
        with tf1.variable_scope("encoder"):
            x = tf.reshape(x, (-1, self.config["hidden_size"]))
            for layer in range(self.config["num_hidden_layers"]):
                with tf1.variable_scope(f"layer_{layer}"):
                    x = self.block(x, tf.cast(mask, tf.float32), batch, sequence)
            return tf.reshape(x, (batch, sequence, self.config["hidden_size"]))

    def block(self, x, mask, batch, sequence):
        with tf1.variable_scope("attention"):
            with tf1.variable_scope("self"):
                attended = self.attend(x, mask, batch, sequence)
            with tf1.variable_scope("output"):
                x = self.layer_norm(self.dense(attended, "dense") + x)
        with tf1.variable_scope("intermediate"):
            inner = self.dense(x, "dense", self.activation)
        with tf1.variable_scope("output"):
            return self.layer_norm(self.dense(inner, "dense") + x)

    def attend(self, x, mask, batch, sequence):
        heads = self.config["num_attention_heads"]
        size = self.config["hidden_size"] // heads
        query, key, value = (self.dense(x, name) for name in ("query", "key", "value"))
        query, key, value = (
            tf.transpose(tf.reshape(part, (batch, sequence, heads, size)), (0, 2, 1, 3)) for part in (query, key, value)
        )
        scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(size).astype("float32")
        scores += (1.0 - mask[:, tf.newaxis, tf.newaxis, :]) * -10000.0
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        return tf.reshape(mixed, (-1, heads * size))

    def mlm_logits(self, states, positions):
        with tf1.variable_scope("predictions"):
            chosen = tf.gather(states, positions, batch_dims=1)
            batch, predictions = tf.shape(positions)[0], tf.shape(positions)[1]
            chosen = tf.reshape(chosen, (-1, self.config["hidden_size"]))
            with tf1.variable_scope("transform"):
                chosen = self.layer_norm(self.dense(chosen, "dense", self.activation))
            with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
                (table,) = [v for v in tf1.global_variables() if v.op.name.endswith("word_embeddings")]
            logits = tf.matmul(chosen, table, transpose_b=True) + self.variable("output_bias")
            return tf.reshape(logits, (batch, predictions, -1))


def signature_of(inputs, outputs):
    infos = [
        {name: tf1.saved_model.build_tensor_info(tensor) for name, tensor in part.items()} for part in (inputs, outputs)
    ]
    return tf1.saved_model.build_signature_def(*infos)
