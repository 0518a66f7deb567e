"""Checkpoints from which a run goes on as if it had never stopped.

A checkpoint is a folder `step-00000120` with `variables.safetensors` and `state.json`: weights, the optimizer's
moments, the step, the loss scale, the position in the data, the best result so far, and the checksum of the variables.
It is written beside its place, flushed to the disk and renamed, so that it is whole or absent.
"""

import json
import logging
import re
import shutil
from pathlib import Path

import numpy as np
import safetensors
from safetensors.numpy import load_file, save_file

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import file_written_beside, folder_written_beside, sha256_of

_VARIABLES, _STATE = "variables.safetensors", "state.json"

_log = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of one run, in one folder.

    Args:
        folder: where they are, or will be.
        variables: dictionary from name to an object with `numpy()` and `assign(value)`, such as `tf.Variable`.
        keep_last: int, how many of the newest are kept.
        writes: bool, whether this process writes; of several workers, one does.
    """

    def __init__(self, folder, variables, keep_last=2, writes=True):
        if keep_last < 1:
            raise ValueError(f"keep_last must be 1 or more. Received: keep_last={keep_last}.")
        self.folder = Path(folder)
        self.variables = variables
        self.keep_last = keep_last
        self.writes = writes

    def steps(self, kind="step"):
        """Returns the steps of the checkpoints that are there, in rising order."""
        names = [path.name for path in self.folder.glob(f"{kind}-*")] if self.folder.is_dir() else []
        return sorted(int(found[1]) for name in names if (found := re.fullmatch(kind + r"-(\d+)", name)))

    def save(self, step, state):
        """Writes a checkpoint to go on from, then removes those that are too old.

        Args:
            step: int.
            state: dictionary that JSON can hold.

        Raises:
            OSError: It cannot be written: the earlier checkpoints are as they were.
        """
        self._write("step", step, state)
        self._remove("step", self.steps()[: -self.keep_last])

    def update(self, step, state):
        """Writes another state into the checkpoint of a step, where there is one; arguments as in `save`."""
        path = self._path(step) / _STATE
        if self.writes and path.is_file():
            content = json.loads(path.read_text(encoding="utf-8")) | {"state": state}
            with file_written_beside(path) as beside:
                beside.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def save_best(self, step, state):
        """Writes a checkpoint of the best model so far, then removes the one before; arguments as in `save`."""
        self._write("best", step, state)
        self._remove("best", [old for old in self.steps("best") if old != step])

    def restore_best(self, group="model"):
        """Assigns those variables of the best checkpoint whose names begin with `<group>/`; returns its step.

        Raises:
            CheckpointError: There is none, it is damaged, or it belongs to another model. No variable was changed.
        """
        steps = self.steps("best")
        if not steps:
            raise CheckpointError(
                f"The folder must hold the checkpoint of a best evaluation. Received: {self.folder}, without a folder "
                "best-…, which fit writes there when it is given a validation_dataset."
            )
        path = self._path(steps[-1], "best")
        self._assign(self._read(path)[1], path, f"{group}/")
        return steps[-1]

    def restore(self):
        """Restores the newest checkpoint that is whole; damaged ones are reported, and the one before is taken.

        Returns:
            The state that was saved, or None where there is no checkpoint.

        Raises:
            CheckpointError: All are damaged, or they belong to another model. No variable was changed.
        """
        if self.writes:
            self._remove_leftovers()
        faults = {}
        for step in reversed(self.steps()):
            try:
                state, arrays = self._read(self._path(step))
            except CheckpointError as error:
                faults[step] = str(error)
                _log.warning("A checkpoint is damaged and is not used: %s", error)
                continue
            self._assign(arrays, self._path(step))
            self._set_aside(faults)
            return state
        if faults:
            raise CheckpointError(
                f"One of the checkpoints in {self.folder} must be whole. All are damaged: {' '.join(faults.values())}"
            )
        return None

    def _set_aside(self, steps):
        """Renames damaged checkpoints: the run will come by their steps again, and write them anew."""
        for step in steps if self.writes else ():
            aside = self.folder / f"damaged-{self._path(step).name}"
            shutil.rmtree(aside, ignore_errors=True)
            self._path(step).rename(aside)

    def _path(self, step, kind="step"):
        return self.folder / f"{kind}-{step:08d}"

    def _write(self, kind, step, state):
        if self.writes and step not in self.steps(kind):
            with folder_written_beside(self._path(step, kind)) as beside:
                arrays = {name: np.asarray(variable.numpy()) for name, variable in self.variables.items()}
                save_file(arrays, beside / _VARIABLES)
                content = {"step": step, "sha256": sha256_of(beside / _VARIABLES), "state": state}
                (beside / _STATE).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def _remove(self, kind, steps):
        for step in steps if self.writes else ():
            shutil.rmtree(self._path(step, kind))

    def _read(self, folder):
        try:
            content = json.loads((folder / _STATE).read_text(encoding="utf-8"))
            if content["sha256"] != sha256_of(folder / _VARIABLES):
                raise CheckpointError(f"{folder / _VARIABLES} is not the file that was written: its checksum differs.")
            return content["state"], load_file(folder / _VARIABLES)
        except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{folder} cannot be read: {error}.") from None

    def _assign(self, arrays, folder, beginning=""):
        """Assigns the variables whose names begin so, all of them or none."""
        arrays = {name: array for name, array in arrays.items() if name.startswith(beginning)}
        variables = {name: variable for name, variable in self.variables.items() if name.startswith(beginning)}
        shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
        faults = [f"{name}: not in the checkpoint" for name in shapes.keys() - arrays.keys()]
        faults += [f"{name}: not in this run" for name in arrays.keys() - shapes.keys()]
        faults += [
            f"{name}: {arrays[name].shape} in the checkpoint, {shapes[name]} here"
            for name in shapes.keys() & arrays.keys()
            if arrays[name].shape != shapes[name]
        ]
        if faults:
            raise CheckpointError(
                f"A run can only go on with the model and the optimizer that it began with. Received: {folder}: "
                + "; ".join(sorted(faults)[:10])
                + ". Give another checkpoint_dir, or the first model."
            )
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def _remove_leftovers(self):
        """What a kill in the middle of writing left behind."""
        for path in self.folder.glob(".tmp-*") if self.folder.is_dir() else ():
            shutil.rmtree(path, ignore_errors=True)
