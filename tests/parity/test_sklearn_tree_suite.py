"""scikit-learn's own tests of decision trees, with our classes in the place of its own.

docs/forests_differences.md has a table of the tests that differ, each with its reason. Whatever
else fails is a bug, and so is a row whose test passes.
"""

import pytest

from support.swapped import differences, failed, run
from support.tree_view import CLASSES

SUITE = "sklearn.tree.tests.test_tree"
# Without it, a third of the tests would say no more than that it is not there.
VIEW = """
    from support import tree_view

    tree_view.install()
"""


@pytest.mark.slow
def test_only_what_the_table_names_differs(tmp_path):
    passed, fits = run(tmp_path, SUITE, CLASSES, more=VIEW)
    expected = differences("forests_differences.md", "## Decision trees")
    assert len(passed) > 450
    assert fits > 1000
    assert failed(passed) == set(expected)
    assert all(expected.values())
