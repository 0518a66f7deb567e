"""Exports killed at random moments; `python tests/export_kills.py --kills 100` is the same for longer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from export_kills import KIT_FILE, bytes_of, is_whole


@pytest.mark.slow
def test_killed_exports():
    script = Path(__file__).with_name("export_kills.py")
    ran = subprocess.run([sys.executable, script, "--kills", "5"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("5 of 5 killed exports left the served version untouched")


@pytest.mark.parametrize("spoil", ["absent", "changed", "one more"])
def test_a_version_in_part_is_noticed(tmp_path, spoil):
    graph = tmp_path / "saved_model.pb"
    graph.write_bytes(b"graph")
    sha256 = json.dumps({"sha256": bytes_of(tmp_path)})
    (tmp_path / KIT_FILE).parent.mkdir()
    (tmp_path / KIT_FILE).write_text(sha256)
    assert is_whole(tmp_path)
    if spoil == "absent":
        graph.unlink()
    else:
        (graph if spoil == "changed" else tmp_path / "more").write_bytes(b"")
    assert not is_whole(tmp_path)
