"""Starts the peers' scripts in their own environments; README.md here says how to make those."""

import os
import subprocess
from pathlib import Path

import pytest


def run_peer(variable, script, *arguments):
    """Runs a script of this folder with the Python that an environment variable names; skips where it names none."""
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"needs an environment of its own, its Python in {variable}: see tests/peers/README.md")
    # Not PYTHONPATH and the like: they are of this environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, Path(__file__).with_name(script), *map(str, arguments)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, f"{script} {arguments} failed:\n{ran.stderr[-4000:]}"
