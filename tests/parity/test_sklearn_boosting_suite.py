"""scikit-learn's own tests of its gradient boosters, run with our classes.

docs/developers/boosting_differences.md lists the tests that fail, each with its reason. Any other
failure is a bug, and so is a listed test of which all parameters pass.
"""

import pytest

from support.swapped import COMPAT, differences, failed, run

PAGE = "boosting_differences.md"
FRIEDMAN = ("GradientBoostingClassifier", "GradientBoostingRegressor")
HIST = tuple(f"Hist{name}" for name in FRIEDMAN)
HIST_TESTS = "sklearn.ensemble._hist_gradient_boosting.tests"
BAR = 0.75  # least share of tests that pass


def check(passed, heading):
    expected = differences(PAGE, heading)
    assert failed(passed) == set(expected)
    assert all(expected.values())
    assert sum(passed.values()) >= BAR * len(passed)


@pytest.mark.slow
def test_gradient_boosting(tmp_path):
    suite = "sklearn.ensemble.tests.test_gradient_boosting"
    passed, fits = run(tmp_path, suite, FRIEDMAN, package=COMPAT)
    assert len(passed) > 120
    assert fits > 250
    check(passed, "## GradientBoosting")


@pytest.mark.slow
def test_hist_gradient_boosting(tmp_path):
    passed, fits = run(tmp_path, f"{HIST_TESTS}.test_gradient_boosting", HIST, package=COMPAT)
    assert len(passed) > 120
    assert fits > 200
    check(passed, "## HistGradientBoosting")


@pytest.mark.slow
def test_warm_start_of_hist_gradient_boosting(tmp_path):
    passed, fits = run(tmp_path, f"{HIST_TESTS}.test_warm_start", HIST, package=COMPAT)
    assert len(passed) > 15
    assert fits > 40
    assert all(passed.values()), passed


@pytest.mark.slow
def test_monotonic_constraints_of_hist_gradient_boosting(tmp_path):
    suite = f"{HIST_TESTS}.test_monotonic_constraints"
    passed, fits = run(tmp_path, suite, HIST, package=COMPAT)
    assert len(passed) > 10
    assert fits > 3
    check(passed, "## Monotonic constraints")
