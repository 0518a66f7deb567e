"""`require_same_settings`: a run that goes on must be the run that began."""

import json
import uuid
from pathlib import Path

from keras_bert_kit.errors import CheckpointError

_FILE = "settings.json"


def require_same_settings(folder, settings):
    """Writes the settings of a run beside its checkpoints, or compares them with those that are there.

    With another batch size, for example, the same number of steps would be another number of epochs. As long as there
    is no checkpoint, there is nothing to go on from, and other settings take the place of the first.

    Args:
        folder: of the checkpoints.
        settings: dictionary that JSON can hold.

    Raises:
        CheckpointError: The run began with others; the message lists both.
    """
    path = Path(folder) / _FILE
    settings = json.loads(json.dumps(settings))
    if not path.is_file() or not any(path.parent.glob("step-*")):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".tmp-{uuid.uuid4().hex}-{_FILE}")  # all workers write, perhaps at once
        beside.write_text(json.dumps(settings, indent=1, ensure_ascii=False), encoding="utf-8")
        beside.replace(path)
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} must hold the settings of the run. Received: {error}.") from None
    changed = [
        f"{name} was {before.get(name)!r} and is {settings.get(name)!r}"
        for name in sorted(before.keys() | settings.keys())
        if before.get(name) != settings.get(name)
    ]
    if changed:
        raise CheckpointError(
            f"A run must go on with the settings that it began with. Received: {'; '.join(changed)}, in {folder}. "
            "Use those, or another folder of checkpoints."
        )
