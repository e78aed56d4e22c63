"""Steps of a round on the device, one by one, against those of the CPU."""

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


def grow(trees, gradients, number):
    trees.grow(gradients, 0, seed=1, tree=number, rate=0.5, n_threads=1)


def assert_same_trees(one, other):
    for name, array in one.trees().items():
        np.testing.assert_array_equal(other.trees()[name], array, err_msg=name)


@pytest.mark.parametrize(
    "losses",
    [
        [("quantile", [0.2], None), ("quantile", [0.9], None)],
        [("huber", [3.0], None), ("huber", [0.25], None), ("tweedie", [1.5], None)],
        [("squared_error", [], None), ("squared_error", [], weights[0])],
        [("poisson", [], weights[0]), ("poisson", [], weights[1]), ("poisson", [], None)],
    ],
    ids=["quantiles", "Huber", "weights", "other weights"],
)
def test_losses_in_turn(losses):
    on_host, on_device = grower(-1, max_depth=3), grower(0, max_depth=3)
    host, device = (_core.Gradients(N, 1, by_row=False) for _ in range(2))
    for number, (loss, parameters, weight) in enumerate(losses):
        largest = 1.0 if weight is None else weight.max()
        _core.apply_loss(
            loss, y, weight, scores, host, 1, parameters=parameters, largest_weight=largest
        )
        on_device.take_gradients(
            loss=loss,
            parameters=parameters,
            largest_weight=largest,
            least_squares=False,
            y=y,
            weight=weight,
            scores=scores,
            gradients=device,
        )
        grow(on_host, host, number)
        grow(on_device, device, number)
    assert_same_trees(on_host, on_device)
