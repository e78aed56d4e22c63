"""Steps of a round on the device, one by one, against those of the CPU."""

from functools import cache

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


@cache
def codes_of():
    columns = _core.Columns(N)
    columns.add_matrix(X)
    return _core.encode(columns, None, [np.arange(19) + 0.5] * 3, 1)


def grower(device, **settings):
    params = _core.TreeParams()
    for name, value in settings.items():
        setattr(params, name, value)
    params.device = device
    return _core.Grower(codes_of(), 1, params)


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


def take(trees, gradients, scores, weight):
    trees.take_gradients(
        loss="squared_error",
        parameters=[],
        largest_weight=1.0 if weight is None else weight.max(),
        least_squares=False,
        y=y,
        weight=weight,
        scores=scores,
        gradients=gradients,
    )


RESIDUALS = {
    "ties": y - scores[:, 0],
    "long tails": np.exp(rng.normal(0, 4, N)) * rng.choice([-1.0, 1.0], N),
    "most of them 0": np.where(rng.random(N) < 0.9, 0.0, rng.normal(size=N)),
    "all 0": np.zeros(N),
}
WEIGHTS = {
    "none": None,
    "some 0": rng.integers(0, 3, N) / 2,
    "any": rng.gamma(0.3, size=N),
}


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("weights", list(WEIGHTS))
@pytest.mark.parametrize("residuals", list(RESIDUALS))
def test_huber(residuals, weights, sampled):
    weight, at = WEIGHTS[weights], (y - RESIDUALS[residuals])[:, np.newaxis].copy()
    trees, gradients = grower(0, max_depth=4), _core.Gradients(N, 1, by_row=False)
    take(trees, gradients, at, weight)
    sample = None
    if sampled:
        sample = _core.Sample()
        sample.draw(N, 0.5, 1, 1, 1)
    trees.grow(gradients, 0, seed=1, tree=0, rate=0.5, sample=sample, n_threads=1)

    def quantile(rows):
        return _core.residual_quantile(
            y[rows],
            None if weight is None else weight[rows],
            at[rows],
            alpha=0.9,
            absolute=True,
            n_threads=1,
        )

    missed = y != at[:, 0]
    delta = quantile(slice(None))
    if delta == 0 and missed.any():
        delta = quantile(missed)
    assert trees.huber_delta(0.9, weight) == delta
    for alpha, clip in ((0.5, delta), (0.5, 0.25), (0.2, None)):
        expected = _core.refit_leaves(
            y, weight, at, 0, trees.leaf_of_row(), trees.n_nodes, 1, alpha=alpha, delta=clip
        )
        actual = trees.refit_on_device(0, alpha, clip, weight)
        np.testing.assert_array_equal(actual.view(np.uint64), expected.view(np.uint64))


def test_residuals_that_are_not_finite_are_an_error():
    at = scores.copy()
    trees, gradients = grower(0, max_depth=4), _core.Gradients(N, 1, by_row=False)
    take(trees, gradients, at, None)
    grow(trees, gradients, 0)
    trees.fetch_scores(at)
    at[5] = -np.inf
    with pytest.raises(ValueError, match="gradient is infinite"):
        take(trees, gradients, at, None)
    with pytest.raises(ValueError, match="residual is infinite"):
        trees.refit_on_device(0, 0.5, 1.0, None)


def test_rounds_are_taken_out_and_put_back():
    trees, gradients = grower(0, max_depth=4), _core.Gradients(N, 1, by_row=False)
    at = scores.copy()
    take(trees, gradients, at, None)
    for number in range(4):
        grow(trees, gradients, number)
    part = np.array([3, 5, 600], np.uint32)
    held_out = _core.DeviceEvaluation(0, codes_of(), part, y[part], None, scores[part])
    added = (np.array([2, 0, 3], np.uint32), np.array([-1.0, 0.3, 2 / 3]), np.zeros(3, np.uint32))
    trees.add_on_device(*added)
    held_out.add_trees(trees, *added)
    expected = [scores.copy(), scores[part]]
    for rows, sums in zip((None, part), expected, strict=True):
        trees.add_trees(*added, codes_of(), rows, sums, _core.RowLeaves(), 1)
    actual = [np.empty((N, 1)), np.empty((3, 1))]
    trees.fetch_scores(actual[0])
    held_out.fetch_scores(actual[1])
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (actual[0] != scores).all()
