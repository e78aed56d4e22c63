"""scikit-learn's own tests of stacking, run with our classes.

docs/developers/stacking_differences.md lists the tests that fail, each with its reason. Any other
failure is a bug, and so is a listed test that passes.
"""

import pytest

from support.swapped import differences, failed, run

SUITE = "sklearn.ensemble.tests.test_stacking"
CLASSES = ("StackingClassifier", "StackingRegressor")
QUICK = "error or prefit or names or randomness or routing or n_features_in"


def expected():
    return differences("stacking_differences.md", "## Stacking")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return run(tmp_path_factory.mktemp("quick"), SUITE, CLASSES, QUICK)


def test_quick_ones_differ_as_the_table_says(quick):
    passed, fits = quick
    assert len(passed) > 25
    assert fits > 20
    assert failed(passed) == set(expected())


@pytest.mark.slow
def test_only_what_the_table_names_differs(quick, tmp_path):
    others, fits_of_others = run(tmp_path, SUITE, CLASSES, f"not ({QUICK})")
    passed, fits = quick[0] | others, quick[1] + fits_of_others
    assert len(passed) > 75
    assert fits > 75
    assert failed(passed) == set(expected())
    assert all(expected().values())
