"""Least numbers of rows in a leaf: by bounds from hessians on the device, too."""

import numpy as np
import pytest

from arboost import _core
from support.cuda import has_device

if not has_device():
    pytest.skip("no CUDA device: its trees are not compared", allow_module_level=True)

HESSIANS = {
    "equal": lambda rng, n: np.ones(n),
    "two": lambda rng, n: rng.choice([0.5, 1.0], n),
    "of chances": lambda rng, n: (p := rng.beta(0.5, 0.5, n)) * (1 - p) + 1e-3,
    "some zero": lambda rng, n: np.where(rng.random(n) < 0.3, 0, rng.uniform(0.1, 1, n)),
}


def grown(device, X, n_bins, gradients, outputs, sample, categories=(), **settings):
    columns = _core.Columns(len(X))
    columns.add_matrix(X)
    edges = [np.arange(n - 1) + 0.5 for n in n_bins]
    flags = [f in categories for f in range(len(n_bins))]
    codes = _core.encode(columns, None, edges, 1, flags)
    params = _core.TreeParams()
    for name, value in settings.items():
        setattr(params, name, value)
    params.device = device
    grower = _core.Grower(codes, outputs, params)
    for number in range(2):
        grower.grow(gradients, 0, seed=3, tree=number, rate=1.0, sample=sample, n_threads=1)
    return grower.trees()


@pytest.mark.parametrize("least", [2, 12, 40])
@pytest.mark.parametrize("hessians", list(HESSIANS))
@pytest.mark.parametrize(
    ("settings", "outputs"),
    [
        ({"max_depth": 7}, 1),
        ({"max_leaves": 30, "best_first": True, "max_depth": 20}, 1),
        ({"max_depth": 6, "colsample_bynode": 0.7}, 1),
        ({"max_depth": 6, "monotone": [1, 0, 0, 0]}, 1),
        ({"max_depth": 6}, 3),
        ({"max_depth": 6, "categories": [2]}, 1),
        ({"max_depth": 6, "sampled": True}, 1),
    ],
    ids=["depth", "leaves", "columns", "monotone", "outputs", "categories", "rows"],
)
def test_device_grows_the_trees_of_the_host(settings, outputs, hessians, least):
    rng = np.random.default_rng(least)
    n, n_bins = 3000, [40, 7, 5, 300 if outputs == 1 and least == 12 else 120]
    X = np.stack([rng.integers(0, k, n) for k in n_bins], axis=1).astype(float)
    X[:, 3] = np.minimum(X[:, 3], rng.geometric(0.05, n))
    X[rng.random(X.shape) < 0.05] = np.nan
    h = np.stack([HESSIANS[hessians](rng, n) for _ in range(outputs)], axis=1)
    signal = np.nan_to_num(X[:, :1]) / 20 + (X[:, 3:] == 2) * 8 + (X[:, 2:3] == 1)
    g = (signal + rng.normal(size=(n, outputs))) * np.sqrt(h)
    gradients = _core.Gradients(n, outputs, by_row=outputs > 1)
    _core.set_gradients(g, h, gradients, 1)
    settings = {"reg_lambda": 0.1, "min_child_weight": 0.0, "min_samples_leaf": least} | settings
    sample = None
    if settings.pop("sampled", False):
        sample = _core.Sample()
        sample.draw(n, 0.7, 1, 1, 1)
    expected = grown(-1, X, n_bins, gradients, outputs, sample, **settings)
    actual = grown(0, X, n_bins, gradients, outputs, sample, **settings)
    assert len(expected["left"]) > 10
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)
