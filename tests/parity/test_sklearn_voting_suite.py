"""scikit-learn's own tests of voting, run with our classes.

docs/developers/stacking_differences.md lists the tests that fail, each with its reason. Any other
failure is a bug, and so is a listed test that passes.
Scikit-learn's common tests of voting and stacking run here, too.
"""

import pytest

from support.swapped import differences, failed, run

SUITE = "sklearn.ensemble.tests.test_voting"
COMMON = "sklearn.ensemble.tests.test_common"
VOTING = ("VotingClassifier", "VotingRegressor")
BOTH = (*VOTING, "StackingClassifier", "StackingRegressor")


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = run(tmp_path, SUITE, VOTING)
    expected = differences("stacking_differences.md", "## Voting")
    assert len(passed) > 35
    assert fits > 40
    assert failed(passed) == set(expected)
    assert all(expected.values())


def test_only_messages_differ_in_the_common_tests(tmp_path):
    passed, fits = run(tmp_path, COMMON, BOTH, "heterogeneous")
    assert len(passed) > 15
    assert fits > 15
    assert failed(passed) == set(differences("stacking_differences.md", "## Common tests of both"))
