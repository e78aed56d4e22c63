"""scikit-learn's own tests of decision trees and their export, run with our classes.

docs/developers/forests_differences.md lists the tests that fail, each with its reason. Any other
failure is a bug, and so is a listed test that passes.
"""

import pytest

from support.swapped import COMPAT, differences, failed, run

SUITE = "sklearn.tree.tests.test_tree"
EXPORT = "sklearn.tree.tests.test_export"
MONOTONE = "sklearn.tree.tests.test_monotonic_tree"
CLASSES = tuple(
    name + kind for name in ("DecisionTree", "ExtraTree") for kind in ("Classifier", "Regressor")
)

FORESTS = tuple(
    name + kind for name in ("RandomForest", "ExtraTrees") for kind in ("Classifier", "Regressor")
)


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = run(tmp_path, SUITE, CLASSES, package=COMPAT)
    expected = differences("forests_differences.md", "## Decision trees")
    assert len(passed) > 450
    assert fits > 2000
    assert failed(passed) == set(expected)
    assert all(expected.values())


@pytest.mark.slow
def test_only_the_table_differs_in_monotone_constraints(tmp_path):
    passed, fits = run(tmp_path, MONOTONE, (*CLASSES, *FORESTS), package=COMPAT)
    assert sum(passed.values()) >= 112
    assert fits > 250
    assert failed(passed) == set(differences("forests_differences.md", "## Monotone constraints"))


@pytest.mark.slow
def test_only_ties_differ_in_the_export(tmp_path):
    passed, fits = run(tmp_path, EXPORT, CLASSES, package=COMPAT)
    assert len(passed) > 15
    assert fits > 15
    assert failed(passed) == set(differences("forests_differences.md", "## Export of trees"))
