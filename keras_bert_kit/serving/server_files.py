"""What a server is started with, beside the versions of a model; TF Serving looks only at folders that are numbers.

    saved_models/ag_news/
        1/  2/                    the versions
        models.config             which model, under which name
        batching_parameters.txt   how requests of several clients are answered together
        docker-compose.yml        one machine
        kubernetes.yaml           many
        README.md                 how to start a server, and how to ask it

The folder is mounted as a whole, so that a server sees a new version as soon as it is there. Files that exist are left
as they are, for people to change, except for README.md, which says what the newest version can be asked.
"""

import base64
import json
import re
from urllib.parse import quote

from keras_bert_kit.files import file_written_beside
from keras_bert_kit.serving.questions import example_of

IMAGE = "tensorflow/serving:2.20.0"

_MODELS_CONFIG = """\
model_config_list {
  config {
    name: @NAME@
    base_path: "/models/model"
    model_platform: "tensorflow"
  }
}
"""

# A request may be larger than what is computed at once. Token ids of different lengths are filled up with what each
# input begins with: `mask_without_servers_padding` in signatures.py. Threads: as many as the server has cores.
_BATCHING_PARAMETERS = """\
max_batch_size { value: 1024 }
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 32 }
batch_timeout_micros { value: 1000 }
num_batch_threads { value: 4 }
max_enqueued_batches { value: 1024 }
pad_variable_length_inputs: true
"""

_DOCKER_COMPOSE = """\
services:
  serving:
    image: @IMAGE@
    command:
      - --model_config_file=/models/model/models.config
      - --enable_batching=true
      - --batching_parameters_file=/models/model/batching_parameters.txt
    ports:
      - "8500:8500"  # gRPC
      - "8501:8501"  # REST
    volumes:
      - .:/models/model:ro
    restart: unless-stopped
    healthcheck:  # the image has no curl
      test: ["CMD", "bash", "-c", "exec 3<>/dev/tcp/localhost/8501"]
"""

_KUBERNETES = """\
# The folder of this file has to be on a volume that the nodes can read: here, a claim called @SLUG@.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: @SLUG@
spec:
  replicas: 2
  selector:
    matchLabels: {app: @SLUG@}
  template:
    metadata:
      labels: {app: @SLUG@}
    spec:
      containers:
        - name: serving
          image: @IMAGE@
          args:
            - --model_config_file=/models/model/models.config
            - --enable_batching=true
            - --batching_parameters_file=/models/model/batching_parameters.txt
          ports:
            - {name: grpc, containerPort: 8500}
            - {name: rest, containerPort: 8501}
          readinessProbe:
            httpGet: {path: @QUOTED_PATH@, port: rest}
          volumeMounts:
            - {name: model, mountPath: /models/model, readOnly: true}
      volumes:
        - name: model
          persistentVolumeClaim: {claimName: @SLUG@, readOnly: true}
---
apiVersion: v1
kind: Service
metadata:
  name: @SLUG@
spec:
  selector: {app: @SLUG@}
  ports:
    - {name: grpc, port: 8500}
    - {name: rest, port: 8501}
"""

_README = """\
# @TITLE@

A text classifier for TensorFlow Serving: raw text in, labels out. This file is written anew by each export.

@REQUIRES@## Start

In this folder, with Docker: `docker compose up`. Without Docker:

```sh
tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name=@SHELL_NAME@ --model_base_path="$PWD"
```

`kubernetes.yaml` does the same in a cluster. A new version in this folder takes over as soon as it has answered the
requests in its `assets.extra/tf_serving_warmup_requests`; to go back, move its folder away.

## Ask

```sh
@CURL@
```

```python
@PYTHON@
```

## Signatures

@SIGNATURES@

`keras-bert-kit check-export .` looks at the newest version: ops, sizes, speed.
"""

_INT8 = """\
This version multiplies in int8, by an op that TensorFlow keeps for itself (`_QuantizedMatMul`). It needs a TensorFlow
that was built with oneDNN for x86-64. The wheels of 2.17, 2.18, 2.20 and 2.21 run it, that of 2.16 does not load it,
later ones are not promised, and no image of TF Serving was tried. Before it serves, run
`keras-bert-kit check-export . --python PYTHON`, with a Python that has the server's TensorFlow.

When it was exported, on texts that its ranges do not come from: @FOUND@.

"""

_REST_ROWS = {
    "serving_default": "A good text.",
    "pairs": {"text_a": "A question?", "text_b": "An answer."},
    "embed": "A good text.",
    "metadata": "",
    "token_ids": {"input_word_ids": [2, 3], "input_mask": [1, 1], "input_type_ids": [0, 0]},
    "examples": {"b64": base64.b64encode(example_of(b"A good text.")).decode()},
}


def write_server_files(folder, signatures, int8=None):
    """Writes the files above.

    Args:
        folder: `pathlib.Path` of the model.
        signatures: list of str, the names of those of the newest version.
        int8: `Int8Comparison` of the newest version, or None.
    """
    name = served_name(folder)
    values = {
        "NAME": json.dumps(name, ensure_ascii=False),
        "IMAGE": IMAGE,
        "SLUG": json.dumps(_dns_label(name)),
        "QUOTED_PATH": json.dumps(f"/v1/models/{quote(name)}"),
        "TITLE": name,
        "REQUIRES": "" if int8 is None else _INT8.replace("@FOUND@", str(int8)),
        "SHELL_NAME": _for_shell(name),
        "CURL": curl_line(name),
        "PYTHON": python_lines(name),
        "SIGNATURES": "\n".join(_signature_line(signature) for signature in signatures),
    }
    texts = {
        "models.config": _MODELS_CONFIG,
        "batching_parameters.txt": _BATCHING_PARAMETERS,
        "docker-compose.yml": _DOCKER_COMPOSE,
        "kubernetes.yaml": _KUBERNETES,
        "README.md": _README,
    }
    for file_name, text in texts.items():
        path = folder / file_name
        if file_name != "README.md" and path.exists():
            continue
        with file_written_beside(path) as beside:
            beside.write_text(re.sub("@([A-Z_]+)@", lambda found: values[found[1]], text), encoding="utf-8")


def served_name(folder):
    """What a server calls the model: the name in `models.config`, where there is one, else that of the folder."""
    folder = folder.resolve()
    path = folder / "models.config"
    content = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    names = re.findall(r'^\s*name:\s*("(?:[^"\\]|\\.)+")', content, re.MULTILINE)
    try:
        (name,) = map(json.loads, names)
    except ValueError:  # none, several, or one that people wrote in another way
        return folder.name
    return name


def _dns_label(name):
    """A name for Kubernetes: 63 of a to z, 0 to 9 and - at most, the first a letter, the last not - (RFC 1035)."""
    label = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
    label = label if re.match("[a-z]", label) else f"model-{label}"
    return label[:63].strip("-")


def curl_line(name, signature="serving_default"):
    """A line for a shell that asks a server on this machine."""
    request = {"signature_name": signature, "instances": [_REST_ROWS[signature]]}
    url = f"http://localhost:8501/v1/models/{quote(name)}:predict"
    return f"curl -d '{json.dumps(request)}' {url}"


def python_lines(name):
    """The same in Python."""
    url = f"http://localhost:8501/v1/models/{quote(name)}:predict"
    return f"""\
import json, urllib.request
request = json.dumps({{"instances": ["A good text."]}}).encode()
print(json.load(urllib.request.urlopen("{url}", request)))"""


def _signature_line(signature):
    """What is sent to a signature, for the README."""
    request = {"signature_name": signature, "instances": [_REST_ROWS[signature]]}
    return f"* `{signature}`: `{json.dumps(request)}`"


def _for_shell(text):
    return "'" + text.replace("'", "'\\''") + "'"
