"""Leaf means of trees on a CUDA device: the same doubles as on the CPU, row by row."""

import numpy as np
import pytest

import arboost
from arboost import _core
from arboost.params.boosting import LEVELS
from arboost.trees.grower import TreeParams, make_grower
from arboost.trees.samples import undrawn_rows
from support import emulator
from support.cuda import emulated, has_device

if not has_device():
    pytest.skip("no CUDA device: its means are not compared", allow_module_level=True)

ROWS = 5000  # more than a tile
RNG = np.random.default_rng(0)
DATA = arboost.Dataset(RNG.normal(size=(ROWS, 3)))
# The order of the rows shows in sums of numbers of very different sizes.
Y = RNG.normal(size=(ROWS, 3)) * 10.0 ** RNG.integers(-9, 9, (ROWS, 3))
WEIGHT = RNG.random(ROWS) + 0.5
GROWN_ON = np.ascontiguousarray(np.sign(Y) * np.abs(Y) ** 0.1)
CHANCES = RNG.random(ROWS) < 0.7
SOME = np.sort(RNG.permutation(ROWS)[: ROWS - 300]).astype(np.uint32)


def grower_of(device, *, width=1, rows=None, max_depth=None, max_leaves=None):
    """A grower of CART's trees, its gradients, and the number of training rows."""
    params = TreeParams(
        max_depth=max_depth,
        max_leaves=max_leaves,
        grow_policy="depthwise" if max_leaves is None else "leafwise",
        min_child_weight=0.0,
        min_samples_leaf=1,
        allow_zero_gain=True,
        device=device,
        **{name: param.default for name, param in LEVELS.items()},
    )
    grower = make_grower(DATA.binned, params, width, rows)
    n = ROWS if rows is None else len(rows)
    gradients = _core.Gradients(n, width, by_row=width > 1)
    _core.set_gradients(-GROWN_ON[:n, :width], np.ones((n, width)), gradients, 1)
    return grower, gradients, n


def nodes(device, draws, *, width=1, weighted=False, **params):
    """Values and covers of a tree's nodes, set from a target by the device that has grown it."""
    grower, gradients, n = grower_of(device, width=width, **params)
    target = _core.LeafTarget(Y[:n, :width].copy(), WEIGHT[:n] if weighted else None)
    sample = None if draws is None else _core.Sample()
    trees = []
    for number in range(2):
        if draws == "host":
            sample.draw_with_replacement(n, n, 0, number, 1)
        elif draws == "rows":
            grower.draw_with_replacement(sample, n, 0, number)
        grower.grow(gradients, 0, seed=0, tree=number, rate=1.0, sample=sample, n_threads=1)
        grower.set_means(target, sets_covers=weighted)
        trees.append({name: array.tobytes() for name, array in grower.last_tree().items()})
    return trees


@pytest.mark.parametrize("draws", [None, "host", "rows"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"max_depth": 0},
        {"max_depth": 3, "weighted": True},
        {"max_depth": 9, "width": 2},
        {"width": 3, "weighted": True},
        {"rows": SOME, "weighted": True},
        {"max_leaves": 300, "width": 2},
        {"max_leaves": 12, "rows": SOME},
    ],
    ids=str,
)
def test_means_are_those_of_the_cpu(params, draws):
    assert nodes("cuda", draws, **params) == nodes("cpu", draws, **params)


@pytest.mark.parametrize("params", [{}, {"rows": SOME}, {"max_leaves": 9, "rows": SOME}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_outside_of_a_sample(params, weighted):
    found = []
    for device in ("cpu", "cuda"):
        grower, gradients, n = grower_of(device, **params)
        sample = _core.Sample()
        chances = _core.DrawChances(WEIGHT[:n] * CHANCES[:n], 1) if weighted else None
        grower.draw_with_replacement(sample, n // 2, 3, 4, chances)
        grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
        found.append(
            grower.values_outside()
            if device == "cuda"
            else host_values(grower, undrawn_rows(sample.positions(), n), params.get("rows"))
        )
    for expected, given in zip(*found, strict=True):
        np.testing.assert_array_equal(given, expected)
    assert len(found[0][0]) > n / 2


def host_values(grower, outside, rows):
    values = np.zeros((len(outside), 1))
    table_rows = outside if rows is None else rows[outside]
    grower.add_tree(0, 1.0, DATA.binned.codes, table_rows, values, 0, 1)
    return outside, values


def test_what_does_not_fit():
    grower, gradients, n = grower_of("cuda")
    sample = _core.Sample()
    with pytest.raises(ValueError, match="chances do not fit"):
        grower.draw_with_replacement(sample, n, 0, 0, _core.DrawChances(np.ones(n - 1), 1))
    sample.draw_with_replacement(n, n, 0, 0, 1)
    grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    with pytest.raises(ValueError, match="no sample on a device"):
        grower.values_outside()


@pytest.mark.skipif(emulated() is None, reason="order of the emulator")
@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_blocks_does_not_count(seed):
    expected = nodes("cpu", "host", max_depth=5, width=2)
    with emulator.shuffled(seed):
        assert nodes("cuda", "rows", max_depth=5, width=2) == expected
