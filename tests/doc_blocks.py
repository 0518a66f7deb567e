"""The code blocks of the Markdown pages, and which test runs which of them.

`test_docs.py` fails where a page has a block that is not in `RUN_BY`, or a test that is named here does not exist.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = "test_docs.py::test_the_commands_are_understood"  # every `sh` block: parsed, or run where that is told here

# {page: {language: the test of each block, in their order}}
RUN_BY = {
    "README.md": {
        "sh": ["test_cli.py::test_the_demo_on_a_tiny_model", "test_repository.py::test_ci_runs_the_words_of_readme"],
        "python": [
            "test_readme.py::test_the_example_has_twelve_lines_and_runs",
            "test_readme.py::test_the_lessons_lines_run",
        ],
    },
    "docs/data.md": {
        "python": ["test_docs_data.py::test_the_code_runs_and_prints_what_it_says"] * 3,
        "sh": ["test_docs_data.py::test_the_commands_run"],
    },
    "docs/handles.md": {"python": ["test_docs.py::test_the_code_of_handles_runs"]},
    "docs/loading.md": {"python": ["test_docs.py::test_the_code_of_loading_runs"], "sh": [COMMANDS]},
    "docs/migration.md": {
        "python": ["test_docs_migration.py::test_new_lines_run"] * 16,
        "python3": ["test_peers_migration.py::test_old_and_new_lines_agree"] * 16,  # the old lines
    },
    "docs/performance.md": {"sh": [COMMANDS]},
    "docs/pretraining.md": {"python": ["test_docs.py::test_the_code_runs"], "sh": [COMMANDS]},
    "docs/quickstart.md": {"python": ["test_docs_pages.py::test_quickstart"] * 3, "sh": [COMMANDS] * 5},
    "docs/recipes.md": {"python": ["test_docs_pages.py::test_recipe"] * 23, "sh": [COMMANDS] * 9},
    "docs/serving.md": {
        "python": ["test_docs.py::version"],
        "py": [
            "test_docs.py::test_the_client_of_serving_runs",
            "test_docs.py::test_the_pipeline_of_serving_is_the_one_that_runs",
        ],
        "sh": [COMMANDS, COMMANDS, COMMANDS, "test_docs.py::test_what_curl_sends_is_answered"],
    },
    "docs/tokenization.md": {"python": ["test_docs.py::test_the_code_of_tokenization_runs"]},
    "docs/training.md": {"python": ["test_docs.py::test_the_code_runs"]},
    "notebooks/README.md": {"sh": [COMMANDS]},
    "saved_models/small_bert/README.md": {
        "python": ["test_docs.py::test_the_code_of_the_small_bert_runs"],
        "sh": [COMMANDS],
    },
    "tests/peers/README.md": {"sh": [COMMANDS]},
}


def pages():
    """Every Markdown page that a reader may take code from, as a path below the project's folder."""
    folders = ["", "docs", "notebooks", "saved_models", "saved_models/small_bert", "tests/peers"]
    return sorted(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).glob("*.md"))


def blocks(page, language=None):
    """The blocks of a page in a language, or [(language, block), …] of all that have one."""
    found = re.findall(r"^ *```(\w+)\n(.*?)^ *```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return found if language is None else [block for name, block in found if name == language]
