"""Memory of a fit: that of a forest does not grow with the number of its trees."""

from __future__ import annotations

import sys

import pytest

from support.processes import run

# Peak of the resident memory beyond that of a forest of few trees; the trees have three nodes.
PEAK = """
    import resource
    import sys

    import numpy as np

    import arboost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2)).astype(np.float32)
    y = X[:, 0] > rng.normal(size=len(X))

    def peak(n_trees):
        forest = getattr(arboost, sys.argv[1])
        forest(n_estimators=n_trees, max_depth=1, bootstrap=True, n_jobs=2).fit(X, y)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    few = peak(8)
    print(peak(200) - few)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts KiB on Linux only")
@pytest.mark.parametrize("kind", ["RandomForestClassifier", "ExtraTreesRegressor"])
def test_samples_are_released_with_their_trees(kind):
    sample_kib = 40_000 * 8 // 1024
    assert int(run(PEAK, kind)) < 20 * sample_kib
