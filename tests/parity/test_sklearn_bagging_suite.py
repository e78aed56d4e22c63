"""scikit-learn's own tests of bagging, run with our classes.

docs/developers/bagging_differences.md lists the tests that fail, each with its reason. Any other
failure is a bug, and so is a listed test that passes.
"""

import pytest

from support.swapped import differences, failed, run

SUITE = "sklearn.ensemble.tests.test_bagging"


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = run(tmp_path, SUITE, ("BaggingClassifier", "BaggingRegressor"))
    expected = differences("bagging_differences.md")
    assert len(passed) > 100
    assert fits > 300
    assert failed(passed) == set(expected)
    assert all(expected.values())
