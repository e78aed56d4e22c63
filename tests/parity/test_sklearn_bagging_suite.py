"""scikit-learn's own tests of bagging, with our classes in the place of its own.

docs/bagging.md has a table of the tests that differ, each with its reason. Whatever else fails is a
bug, and so is a row whose test passes.
"""

import pytest

from support.swapped import differences, failed, run

SUITE = "sklearn.ensemble.tests.test_bagging"


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = run(tmp_path, SUITE, ("BaggingClassifier", "BaggingRegressor"))
    expected = differences("bagging.md", "## Where scikit-learn's tests differ")
    assert len(passed) > 100
    assert fits > 300
    assert failed(passed) == set(expected)
    assert all(expected.values())
