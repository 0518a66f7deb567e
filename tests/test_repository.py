"""The repository speaks of the project alone, and its frame (README, .ci/run, LICENSE) holds together."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WINDOW = 8  # consecutive words that two texts do not share by chance


@pytest.fixture(scope="module")
def tracked():
    """{path: text} of every tracked text file."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    paths = [path for path in listed.split("\0") if path and (ROOT / path).is_file()]
    contents = {path: (ROOT / path).read_bytes() for path in paths}
    return {path: data.decode("utf-8") for path, data in contents.items() if b"\0" not in data}


def places(text, folders):
    """Absolute paths of a person's or a machine's folders in a text."""
    usual = re.findall(r"(?<![\w.*}~])/(?:home|Users|root|work)/[\w.-]+", text)
    return usual + [folder for folder in folders if folder in text]


def windows(text):
    """The set of all runs of WINDOW consecutive words, without case and punctuation."""
    words = re.findall(r"[a-z]+", text.lower())
    return set(zip(*(words[start:] for start in range(WINDOW)), strict=False))


def test_no_path_of_a_machine(tracked):
    # A folder such as / or /tmp is nobody's; the folder of this checkout and a home folder are somebody's.
    folders = [f"{folder}/" for folder in (ROOT, Path.home()) if len(folder.parts) > 2]
    found = {path: places(text, folders) for path, text in tracked.items()}
    assert {path: what for path, what in found.items() if what} == {}


def test_paths_are_found():
    somebody = "/home" + "/someone"  # in two pieces, since this file is searched too
    assert places(f"see {somebody}/x", []) == [somebody]
    assert places("in /srv/kit/a", ["/srv/kit/"]) == ["/srv/kit/"]
    assert places("~/{0}/x https://host/{0}/x ../{0}/x /net{0}/x".format("work"), []) == []


def test_no_text_that_may_not_be_copied(tracked, shared):
    """No run of words of AG News or of GLUE: those files are for local use."""
    ours = {}
    for path, text in tracked.items():
        if path != "LICENSE":
            ours |= dict.fromkeys(windows(text), path)
    files = [shared / "data" / "ag_news" / name for name in ("test.csv", "train_title_desc.csv")]
    files += [file for kind in ("dev", "test") for file in sorted((shared / "data" / "glue").glob(f"*/{kind}.?sv"))]
    found = []
    for file in files:
        theirs = windows(file.read_text(encoding="utf-8"))
        assert theirs
        found += [(ours[window], file.name, " ".join(window)) for window in theirs & ours.keys()]
    assert found == []


def test_no_index_or_registry_is_named(tracked):
    """Where packages come from is the user's choice: no option, no host."""
    pattern = re.compile(r"(?:extra-)?index-url|trusted-host|pythonhosted|pypi\.org/simple")
    ours = Path(__file__).name
    assert [path for path, text in tracked.items() if not path.endswith(ours) and pattern.search(text)] == []


def test_licence_is_apache_2_unmodified():
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_ci_runs_the_words_of_readme():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    ran = subprocess.run([script, "--words"], capture_output=True, text=True, check=True)
    install, tests = ran.stdout.splitlines()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = readme.split("<!-- tests -->")[1]
    assert f"{install} && {tests}" in " ".join(block.replace("\\\n", " ").split())
    assert ".[test]" in install and "pytest" in tests and "pytest" not in install
