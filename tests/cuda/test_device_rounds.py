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


def codes_of():
    columns = _core.Columns(N)
    columns.add_matrix(X)
    return _core.encode(columns, None, [np.arange(19) + 0.5] * 3, 1)


CODES = codes_of()


def grower(device, **settings):
    params = _core.TreeParams()
    for name, value in settings.items():
        setattr(params, name, value)
    params.device = device
    return _core.Grower(CODES, 1, params)


def rounds(device, loss, parameters, weight, y=y, **settings):
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


def half_of_the_rows():
    sampling = _core.RowSampling()
    sampling.rate = 0.5
    return sampling


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("weight", list(WEIGHTS))
@pytest.mark.parametrize("residuals", list(RESIDUALS))
def test_leaves_of_huber(residuals, weight, sampled):
    settings = {
        "y": scores[:, 0] + RESIDUALS[residuals],
        "least_squares": True,
        "leaves": _core.LeafValues.quantiles,
        "leaf_quantiles": [0.5],
    }
    if sampled:
        settings["sampling"] = half_of_the_rows()
    host, device = (rounds(i, "huber", [0.9], WEIGHTS[weight], **settings) for i in (-1, 0))
    for name, array in host.items():
        np.testing.assert_array_equal(device[name], array, err_msg=name)


def test_scores_that_are_not_finite_are_an_error():
    bad = y.copy()
    bad[5] = np.inf
    for device in (-1, 0):
        with pytest.raises(ValueError, match="residual is infinite"):
            rounds(device, "huber", [0.9], None, y=bad)


def test_dropped_rounds_of_an_evaluation_set():
    dropout = _core.Dropout()
    dropout.rate_drop, dropout.one_drop = 0.4, True
    part, actual = np.array([3, 5, 600], np.uint32), []
    for device in (-1, 0):
        trees, params = grower(device, max_depth=4), _core.RoundParams()
        params.set_loss("squared_error", [])
        params.rate, params.dropout = 0.5, dropout
        boosting = _core.Boosting(trees, params, 1, y, None)
        boosting.set_scores(scores)
        held_out = _core.make_evaluation(
            CODES, part, y[part], None, scores[part], adds_repeatedly=True, device=device
        )
        finished = boosting.run(
            9, 9.0, sets=[held_out], losses=["squared_error"], parameters=[[]],
            keeps_scores=True, n_threads=1,
        )  # fmt: skip
        actual.append([boosting.scores.copy(), held_out.scores.copy(), finished[1], *finished[3]])
        np.testing.assert_array_equal(finished[2][-1][0], held_out.scores)
    for host, device in zip(*actual, strict=True):
        np.testing.assert_array_equal(host, device)
    assert (actual[0][0] != scores).all()
