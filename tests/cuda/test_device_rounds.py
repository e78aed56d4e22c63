"""Rounds of boosting on the device against those of the CPU."""

import numpy as np
import pytest

from arboost import _core
from support.cuda import has_device

if not has_device():
    pytest.skip("no CUDA device: its rounds are not compared", allow_module_level=True)

N = 700
rng = np.random.default_rng(0)
X = rng.integers(0, 20, (N, 3)).astype(float)
y = X[:, 0] + rng.integers(0, 64, N) / 8
scores = rng.integers(0, 64, (N, 1)) / 4
weights = [rng.integers(1, 5, N) / 2 for _ in range(2)]


def grower(device, **settings):
    columns = _core.Columns(N)
    columns.add_matrix(X)
    params = _core.TreeParams()
    for name, value in settings.items():
        setattr(params, name, value)
    params.device = device
    return _core.Grower(_core.encode(columns, None, [np.arange(19) + 0.5] * 3, 1), 1, params)


def rounds(device, loss, parameters, weight, **settings):
    trees, params = grower(device, max_depth=3), _core.RoundParams()
    params.set_loss(loss, parameters)
    params.rate, params.max_step = 0.5, np.inf
    params.largest_weight = 1.0 if weight is None else weight.max()
    for name, value in settings.items():
        setattr(params, name, value)
    boosting = _core.Boosting(trees, params, 1, y, weight)
    boosting.set_scores(scores)
    for _ in range(2):
        boosting.run(2, 0.0, sets=[], losses=[], parameters=[], keeps_scores=False, n_threads=1)
    boosting.run(2, 9.0, sets=[], losses=[], parameters=[], keeps_scores=False, n_threads=1)
    return trees.trees() | {"scores": boosting.scores.copy()}


@pytest.mark.parametrize("weight", [None, *weights], ids=["plain", "weights", "other weights"])
@pytest.mark.parametrize(
    ("loss", "parameters", "settings"),
    [
        ("squared_error", [], {}),
        ("huber", [0.7], {}),  # whose delta is another one in every round
        ("huber", [0.7], {"least_squares": True}),
        ("tweedie", [1.5], {"least_squares": True, "leaves": _core.LeafValues.steps}),
        ("quantile", [0.2], {"leaves": _core.LeafValues.quantiles, "leaf_quantiles": [0.2]}),
        ("poisson", [], {"parallel_trees": 2}),
    ],
    ids=["squares", "Huber", "least squares", "steps", "quantile", "parallel"],
)
def test_rounds_of_boosting(loss, parameters, settings, weight):
    host = rounds(-1, loss, parameters, weight, **settings)
    device = rounds(0, loss, parameters, weight, **settings)
    for name, array in host.items():
        np.testing.assert_array_equal(device[name], array, err_msg=name)
