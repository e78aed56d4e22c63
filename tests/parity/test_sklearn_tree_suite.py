"""scikit-learn's own tests of decision trees, run with our classes.

docs/forests_differences.md lists the tests that fail, each with its reason. Any other failure
is a bug, and so is a listed test that passes.
"""

import pytest

from support.swapped import differences, failed, run
from support.tree_view import CLASSES

SUITE = "sklearn.tree.tests.test_tree"
# Without the attribute `tree_`, a third of the tests would fail for its absence alone.
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
