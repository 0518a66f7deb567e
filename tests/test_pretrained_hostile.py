"""Hostile and damaged files through `load_pretrained`: all malicious ones and some damaged ones; all of them slowly."""

import pytest
from hostile_corpus import failures, report, run


def require_good(results, malicious, damaged):
    assert not failures(results), report(results)
    kinds = [result["malicious"] for result in results]
    assert (kinds.count(True) >= malicious, kinds.count(False) >= damaged) == (True, True), report(results)
    assert all(result["outcome"] == "refused" for result in results if result["malicious"])
    assert all("/" in result["error"] for result in results if result["malicious"]), "a file is named"


def test_malicious_files_are_refused_and_damaged_ones_do_no_harm():
    require_good(run(mutants_of_each=3), malicious=300, damaged=45)


@pytest.mark.slow
def test_a_thousand_damaged_files_do_no_harm(capsys):
    results = run(mutants_of_each=70, malicious=False)
    require_good(results, malicious=0, damaged=1000)
    with capsys.disabled():
        print("\n" + report(results))
