"""scikit-learn's own tests of AdaBoost, run with our classes.

docs/developers/adaboost_differences.md lists the tests that fail, each with its reason. Any other
failure is a bug, and so is a listed test that passes.
"""

import pytest

from support.swapped import differences, failed, run

SUITE = "sklearn.ensemble.tests.test_weight_boosting"

CLASSES = ("AdaBoostClassifier", "AdaBoostRegressor")
# The defaults of scikit-learn.
DEFAULTS = """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    arboost.AdaBoostClassifier.__init__.__defaults__ = (DecisionTreeClassifier(max_depth=1),)
    arboost.AdaBoostRegressor.__init__.__defaults__ = (DecisionTreeRegressor(max_depth=3),)
    arboost.AdaBoostRegressor.__init__.__kwdefaults__["resample"] = True
"""


def rows():
    return differences("adaboost_differences.md")


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = run(tmp_path, SUITE, CLASSES)
    assert len(passed) > 40
    assert fits > 40
    assert failed(passed) == set(rows())
    assert all(rows().values())


def test_defaults_are_all_that_the_last_rows_say(tmp_path):
    by_default = ["test_iris", "test_diabetes", "test_sample_weight_adaboost_regressor"]
    assert list(rows())[-3:] == by_default
    passed, _ = run(tmp_path, SUITE, CLASSES, " or ".join(by_default), DEFAULTS)
    assert {name.partition("[")[0] for name in passed} == set(by_default)
    assert all(passed.values()), passed
