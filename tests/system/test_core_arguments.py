"""Wrong calls of the core raise Python exceptions: it trusts no length, index or share."""

import numpy as np
import pytest

from arboost.backend import core

N = 40
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=N), RNG.integers(0, 3, N), RNG.normal(size=N)])
Y = X[:, 0] + X[:, 1]
WEIGHT = np.ones(N)
SCORES = np.zeros((N, 1))
WRONG = (ValueError, IndexError, TypeError)


def columns_of(array=X):
    columns = core.Columns(len(array))
    columns.add_matrix(np.ascontiguousarray(array))
    return columns


COLUMNS = columns_of()
EDGES = core.quantiles(COLUMNS, None, None, 255, 1)
CODES = core.encode(COLUMNS, None, EDGES, 1)
RANKS = core.rank(COLUMNS, None, 1)
FINE = core.encode(COLUMNS, None, EDGES, 1, plan=core.StoragePlan())


def blank(n_rows=N, n_outputs=1):
    return core.Gradients(n_rows, n_outputs, by_row=False)


def gradients(n_rows=N, n_outputs=1):
    made = blank(n_rows, n_outputs)
    g = np.tile(Y[:n_rows, np.newaxis], n_outputs)
    core.set_gradients(g, np.ones((n_rows, n_outputs)), made, 1)
    return made


def grower(codes=CODES, width=1, rows=None, **params):
    given = core.TreeParams()
    for name, value in params.items():
        setattr(given, name, value)
    return core.Grower(codes, width, given, rows)


def grown(codes=CODES, **params):
    made = grower(codes, **params)
    made.grow(gradients(), 0, seed=1, tree=0, rate=0.1, n_threads=1)
    return made


def rounds(
    y=Y, scores=SCORES, loss="squared_error", n_rounds=2, parameters=(), settings=None, **shares
):
    sampling = core.RowSampling()
    for name, value in shares.items():
        setattr(sampling, name, value)
    params = core.RoundParams()
    params.set_loss(loss, parameters)
    params.sampling = sampling
    for name, value in (settings or {}).items():
        setattr(params, name, value)
    made = grower()
    boosting = core.Boosting(made, params, scores.shape[1], y, None)
    boosting.set_scores(scores)
    nothing = {"sets": [], "losses": [], "parameters": [], "keeps_scores": False}
    boosting.run(n_rounds, 9.0, **nothing, n_threads=1)
    return made


def dropout(**shares):
    made = core.Dropout()
    for name, value in shares.items():
        setattr(made, name, value)
    return made


def wide_columns(n):
    return columns_of(RNG.normal(size=(N, n)))


def many_zeros():
    columns = core.Columns(4000)
    rows = np.arange(0, 4000, 97, dtype=np.uint32)
    for _ in range(3):
        columns.add_sparse(rows, np.arange(1.0, len(rows) + 1), 0.0)
    return columns


THIN = many_zeros()
THIN_EDGES = core.quantiles(THIN, None, None, 255, 1)
THIN_CODES = core.encode(THIN, None, THIN_EDGES, 1)
FEW = columns_of(RNG.integers(0, 3, (4000, 5)).astype(float))
FEW_PLAN = core.plan_storage(
    FEW, None, core.quantiles(FEW, None, None, 255, 1), 1, [], bundling=True, max_conflict_rate=0.0
)

GROWER = {
    "monotone, too few": lambda: grown(monotone=[1]),
    "monotone, too many": lambda: grown(monotone=[1] * 9),
    "interactions, unknown feature": lambda: grown(interactions=[[0, 7]]),
    "interactions, descending": lambda: grown(interactions=[[1, 0]]),
    "no output": lambda: grower(width=0),
    "no features": lambda: grown(core.encode(core.Columns(N), None, [], 1)),
    "no rows": lambda: grower(core.encode(core.Columns(0), None, [], 1)),
    "share of features": lambda: grown(colsample_bytree=np.nan),
    "share above 1": lambda: grown(colsample_bynode=2.0),
    "share of 0": lambda: grown(colsample_bylevel=0.0),
    "negative penalty": lambda: grown(reg_lambda=-1.0),
    "penalty of NaN": lambda: grown(gamma=np.nan),
    "no leaf": lambda: grown(max_leaves=0),
    "rows beyond": lambda: grower(rows=np.array([0, N], np.uint32)),
    "rows descend": lambda: grower(rows=np.array([3, 2], np.uint32)),
    "gradients not computed": lambda: grower().grow(
        blank(), 0, seed=1, tree=0, rate=0.1, n_threads=1
    ),
    "gradients of other rows": lambda: grower().grow(
        gradients(7), 0, seed=1, tree=0, rate=0.1, n_threads=1
    ),
    "unknown output": lambda: grower().grow(gradients(), 1, seed=1, tree=0, rate=0.1, n_threads=1),
    "threads below 0": lambda: grower().grow(
        gradients(), 0, seed=1, tree=0, rate=0.1, n_threads=-3
    ),
    "sample not drawn": lambda: grower().grow(
        gradients(), 0, seed=1, tree=0, rate=0.1, n_threads=1, sample=core.Sample()
    ),
    "codes of another table": lambda: grown().add_tree(
        0, 1.0, core.encode(wide_columns(2), None, EDGES[:2], 1), None, SCORES, 0, 1
    ),
    "codes of other categories": lambda: grown().add_tree(
        0,
        1.0,
        core.encode(COLUMNS, None, [EDGES[0], np.array([0.5, 1.5]), EDGES[2]], 1, [0, 1, 0]),
        None,
        SCORES,
        0,
        1,
    ),
    "unknown tree": lambda: grown().add_tree(1, 1.0, CODES, None, SCORES, 0, 1),
    "scores of other rows": lambda: grown().add_leaves(SCORES[:3], 0, 1),
    "values of other nodes": lambda: grown().set_values(np.zeros((1, 2))),
    "nothing grown": lambda: grower().last_tree(),
    "rounds of other rows": lambda: rounds(y=Y[:3]),
    "rounds without loss parameters": lambda: rounds(loss="huber"),
    "rounds of an unknown loss": lambda: rounds(loss="cubic"),
    "rounds without scores": lambda: rounds(scores=SCORES[:, :0]),
    "rounds of no sample": lambda: rounds(rate=np.nan),
    "rounds of a sample beyond": lambda: rounds(top_rate=7.0),
    "no rounds": lambda: rounds(n_rounds=0),
    "rounds of a loss without gradients": lambda: rounds(loss=""),
    "rounds without steps": lambda: rounds(settings={"one_step": True}),
    "rounds without trees": lambda: rounds(settings={"parallel_trees": 0}),
    "rounds of a share of Huber": lambda: rounds(loss="huber", parameters=[1.5]),
    "rounds of no quantiles": lambda: rounds(settings={"leaves": core.LeafValues.quantiles}),
    "rounds with a share of dropout": lambda: rounds(settings={"dropout": dropout(rate_drop=2.0)}),
    "steps without parameters": lambda: core.leaf_steps("tweedie", [], 1, Y, Y),
    "steps of other sums": lambda: core.leaf_steps("poisson", [], 1, Y, Y[1:]),
    "no growers": lambda: core.gather_forest([], np.zeros(0, np.int64), EDGES, 1),
    "a grower of None": lambda: core.gather_forest([None], np.zeros(1, np.int64), EDGES, 1),
    "growers of other features": lambda: core.gather_forest(
        [grown(), grown(core.encode(wide_columns(9), None, EDGES * 3, 1))],
        np.arange(2),
        EDGES,
        1,
    ),
    "an order beyond": lambda: core.gather_forest([grown()], np.array([4]), EDGES, 1),
    "edges of other features": lambda: core.gather_forest([grown()], np.array([0]), EDGES[:1], 1),
    "restored arrays of other types": lambda: grower().restore(
        {name: array.astype(str) for name, array in grown().trees().items()}
    ),
    "restored arrays too short": lambda: grower().restore(
        {name: array[:-1] for name, array in grown().trees().items()}
    ),
}


def split(histogram, total, reg_lambda, *, has_missing):
    totals = np.full(1, total, np.int64)
    return core.find_split_kernel(histogram[:, np.newaxis], has_missing, totals, reg_lambda, 1)


def partition(codes, feature, n=1):
    elements, out = np.zeros(n, np.uint64), np.zeros(1, np.uint64)
    return core.partition_kernel(codes, feature, 1, elements=elements, out=out, missing_left=False)


KERNELS = {
    "empty histogram": lambda: split(np.zeros(0, np.int64), 0, 1.0, has_missing=False),
    "missing alone": lambda: split(np.zeros(1, np.int64), 0, 1.0, has_missing=True),
    "no histogram with missing": lambda: split(np.zeros(0, np.int64), 0, 1.0, has_missing=True),
    "negative lambda": lambda: split(np.zeros(4, np.int64), 0, -1.0, has_missing=False),
    "histogram of ranks": lambda: core.HistogramKernel(RANKS),
    "elements beyond": lambda: core.HistogramKernel(CODES).add(
        np.array([N], np.uint64), None, np.zeros(core.HistogramKernel(CODES).n_slots, np.int64)
    ),
    "histogram of another length": lambda: core.HistogramKernel(CODES).add(
        np.zeros(1, np.uint64), None, np.zeros(1, np.int64)
    ),
    "partition of ranks": lambda: partition(RANKS, 0),
    "partition of an unknown feature": lambda: partition(CODES, 3),
    "partition of a sparse feature": lambda: partition(THIN_CODES, 0),
    "partition into another length": lambda: partition(CODES, 0, n=2),
}

LOSSES = {
    "no outputs": lambda: blank(N, 0),
    "outputs beyond": lambda: blank(N, 2**62),
    "rows beyond": lambda: blank(2**62),
    "not computed": lambda: blank().to_numpy(),
    "no parameter": lambda: core.apply_loss("huber", Y, None, SCORES, gradients(), 1),
    "no scores": lambda: core.apply_loss("logistic", Y, None, None, gradients(), 1),
    "unknown loss": lambda: core.loss_value("cubic", Y, None, SCORES, 1),
    "scores without columns": lambda: core.loss_value("softmax", Y, None, SCORES[:, :0], 1),
    "weights of other rows": lambda: core.loss_value("logistic", Y, WEIGHT[:3], SCORES, 1),
    "leaf beyond": lambda: core.refit_leaves(
        Y, None, SCORES, 0, np.full(N, 3, np.uint32), 3, 1, alpha=0.5
    ),
    "leaves of no rows": lambda: core.refit_leaves(
        Y[:0], None, SCORES[:0], 0, np.zeros(0, np.uint32), 3, 1, alpha=0.5
    ),
    "unknown output": lambda: core.refit_leaves(
        Y, None, SCORES, 1, np.zeros(N, np.uint32), 3, 1, alpha=0.5
    ),
    "alpha of NaN": lambda: core.refit_leaves(
        Y, None, SCORES, 0, np.zeros(N, np.uint32), 3, 1, alpha=np.nan
    ),
    "delta of infinity": lambda: core.refit_leaves(
        Y, None, SCORES, 0, np.zeros(N, np.uint32), 3, 1, alpha=0.5, delta=np.inf
    ),
    "infinite weight": lambda: core.refit_leaves(
        Y, WEIGHT * np.inf, SCORES, 0, np.zeros(N, np.uint32), 3, 1, alpha=0.5
    ),
    "alpha beyond": lambda: core.residual_quantile(
        Y, None, None, alpha=7.0, absolute=False, n_threads=1
    ),
    "residuals without scores": lambda: core.residual_quantile(
        Y, None, SCORES[:, :0], alpha=0.5, absolute=False, n_threads=1
    ),
}

BINS = {
    "row beyond": lambda: core.encode(COLUMNS, np.array([N], np.uint32), EDGES, 1),
    "edges of NaN": lambda: core.encode(COLUMNS, None, [np.array([np.nan]), *EDGES[1:]], 1),
    "edges descend": lambda: core.encode(COLUMNS, None, [np.array([2.0, 1.0]), *EDGES[1:]], 1),
    "edges of fewer columns": lambda: core.encode(COLUMNS, None, EDGES[:2], 1),
    "categories of fewer columns": lambda: core.encode(COLUMNS, None, EDGES, 1, [True]),
    "plan of more features": lambda: core.encode(COLUMNS, None, EDGES, 1, [], FEW_PLAN),
    "plan of fewer categories": lambda: core.plan_storage(
        COLUMNS, None, EDGES, 1, [True], bundling=True, max_conflict_rate=0.0
    ),
    "conflicts of NaN": lambda: core.plan_storage(
        COLUMNS, None, EDGES, 1, [], bundling=True, max_conflict_rate=np.nan
    ),
    "weights of NaN": lambda: core.quantiles(COLUMNS, None, WEIGHT * np.nan, 9, 1),
    "weights of 0": lambda: core.quantiles(COLUMNS, None, WEIGHT * 0, 9, 1),
    "weights below 0": lambda: core.quantiles(COLUMNS, None, -WEIGHT, 9, 1),
    "weights beyond": lambda: core.quantiles(COLUMNS, None, WEIGHT * 1e308, 9, 1),
    "weights of other rows": lambda: core.quantiles(COLUMNS, None, WEIGHT[:3], 9, 1),
    "one bin": lambda: core.quantiles(COLUMNS, None, None, 1, 1),
    "threads below 0": lambda: core.quantiles(COLUMNS, None, None, 9, -1),
    "take beyond": lambda: CODES.take(np.array([N], np.uint32), 1),
    "rank beyond": lambda: core.rank(COLUMNS, np.array([N], np.uint32), 1),
    "levels of fewer columns": lambda: core.rank(COLUMNS, None, 1, [3]),
    "nothing proposed": lambda: core.Proposal(FINE, 0.1).codes,
    "no code yet": lambda: core.Proposal(FINE, 0.1).last_code(0, 0),
    "code of an unknown feature": lambda: proposal().last_code(3, 0),
    "hessians of other rows": lambda: core.Proposal(FINE, 0.1).update(np.ones(3, np.uint32), 1),
    "column beyond": lambda: COLUMNS.read(3),
    "columns beyond": lambda: COLUMNS.select([3]),
    "missing beyond": lambda: COLUMNS.set_missing(0.0, [3]),
}


def proposal():
    made = core.Proposal(FINE, 0.1)
    made.update(np.ones(N, np.uint32), 1)
    return made


SAMPLES = {
    "no rows": lambda: core.Sample().draw(0, 0.5, 1, 1, 1),
    "rate of NaN": lambda: core.Sample().draw(N, np.nan, 1, 1, 1),
    "rate beyond": lambda: core.Sample().draw(N, 1.5, 1, 1, 1),
    "gradients not computed": lambda: core.Sample().draw_by_gradient(blank(), 0.5, 1.0, 1, 1, 1),
    "negative lambda": lambda: core.Sample().draw_by_gradient(gradients(), 0.5, -1.0, 1, 1, 1),
    "one side beyond": lambda: core.Sample().draw_one_side(gradients(), 0.9, 0.9, 1, 1, 1),
    "one side not computed": lambda: core.Sample().draw_one_side(blank(), 0.2, 0.1, 1, 1, 1),
    "no draws": lambda: core.Sample().draw_with_replacement(N, 0, 1, 1, 1),
    "draws beyond": lambda: core.Sample().draw_with_replacement(N, 2**32, 1, 1, 1),
    "weights of NaN": lambda: core.Sample().draw_by_weight(WEIGHT * np.nan, 1, 1, 1),
}


class Forest:
    """A tree of one split, with arrays to exchange."""

    def __init__(self, **other):
        arrays = {
            "tree_start": np.array([0, 3], np.int64),
            "feature": np.zeros(3, np.int32),
            "threshold": np.zeros(3),
            "left": np.array([1, 0, 0], np.int32),
            "default_left": np.zeros(3, bool),
            "level_set": np.full(3, -1, np.int32),
            "level_sets": np.zeros((0, 4), np.uint64),
            "value": np.ones((3, 1)),
            "output": np.zeros(1, np.int32),
            "cover": np.ones(3),
            "gain": np.ones(3),
        }
        for name, array in {**arrays, **other}.items():
            setattr(self, name, array)


WRONG_FORESTS = {
    "another type": {"left": np.array([1.0, 0, 0])},
    "no array": {"threshold": None},
    "too short": {"feature": np.zeros(2, np.int32)},
    "no trees": {"tree_start": np.zeros(0, np.int64)},
    "trees beyond": {"tree_start": np.array([0, 9])},
    "trees below": {"tree_start": np.array([-5, 3])},
    "a tree without nodes": {"tree_start": np.array([3, 3])},
    "child beyond": {"left": np.array([2, 0, 0], np.int32)},
    "child below": {"left": np.array([-1, 0, 0], np.int32)},
    "child of itself": {"left": np.array([0, 1, 0], np.int32)},
    "unknown feature": {"feature": np.full(3, 3, np.int32)},
    "feature below": {"feature": np.full(3, -1, np.int32)},
    "unknown output": {"output": np.array([1], np.int32)},
    "output below": {"output": np.array([-1], np.int32)},
    "unknown set": {"level_set": np.zeros(3, np.int32)},
    "sets of three words": {"level_sets": np.zeros((1, 3), np.uint64)},
    "two values": {"value": np.ones((3, 2))},
}
USES = {
    "traverse": lambda forest: core.traverse(COLUMNS, forest, np.zeros((N, 1)), 0, 1, 1),
    "pack": lambda forest: core.PackedForest(forest, 3, 1),
    "median": lambda forest: core.traverse_median(
        COLUMNS, forest, np.ones(1), np.zeros((N, 1)), 1, 1
    ),
    "shap": lambda forest: core.ShapForest(forest, 3, 1),
    "grid": lambda forest: core.GridForest(forest, 3, 1, [0], [np.zeros(1)]),
    "check": lambda forest: core.check_forest(forest, np.zeros(3, bool), 3, 1),
}
PACKED = core.PackedForest(Forest(), 3, 1)

PREDICTIONS = {
    "trees beyond": lambda: core.traverse(COLUMNS, Forest(), np.zeros((N, 1)), 0, 2, 1),
    "trees backwards": lambda: core.traverse(COLUMNS, Forest(), np.zeros((N, 1)), 1, 0, 1),
    "out of other rows": lambda: PACKED.traverse(COLUMNS, np.zeros((3, 1)), 1),
    "out without columns": lambda: PACKED.traverse(COLUMNS, np.zeros((N, 0)), 1),
    "another table": lambda: PACKED.traverse(wide_columns(2), np.zeros((N, 1)), 1),
    "another table, leaves": lambda: PACKED.leaves(wide_columns(2), np.zeros((N, 1), np.int32), 1),
    "leaves of other trees": lambda: PACKED.leaves(COLUMNS, np.zeros((N, 2), np.int32), 1),
    "no weights": lambda: core.weighted_median(np.zeros((3, 0)), np.zeros(0), 1),
    "other weights": lambda: core.weighted_median(np.zeros((3, 2)), np.ones(3), 1),
    "no forest": lambda: core.RowModel(None, np.zeros(1), "identity", 0.0, np.nan),
    "other outputs": lambda: core.RowModel(PACKED, np.zeros(2), "identity", 0.0, np.nan),
    "no scores": lambda: core.link("softmax", np.zeros((3, 0)), np.zeros((3, 0))),
    "grid of an unknown feature": lambda: core.GridForest(Forest(), 3, 1, [3], [np.zeros(1)]),
    "grid of three features": lambda: core.GridForest(Forest(), 3, 1, [0, 1, 2], [np.zeros(1)] * 3),
    "grid without points": lambda: core.GridForest(Forest(), 3, 1, [0], [np.zeros(0)]),
    "grid of fewer values": lambda: core.GridForest(Forest(), 3, 1, [0, 1], [np.zeros(1)]),
    "rows beyond": lambda: core.GridForest(Forest(), 3, 1, [0], [np.zeros(1)]).of_rows(
        COLUMNS, N, np.zeros((1, 1, 1)), 1
    ),
    "rows far beyond": lambda: core.GridForest(Forest(), 3, 1, [0], [np.zeros(1)]).of_rows(
        COLUMNS, 2**64 - 1, np.zeros((1, 1, 1)), 1
    ),
    "no background": lambda: core.ShapForest(Forest(), 3, 1).against(
        COLUMNS, core.Columns(0), np.zeros((N, 3, 1)), 1
    ),
    "shap values of other features": lambda: core.ShapForest(Forest(), 3, 1).values(
        COLUMNS, np.zeros((N, 2, 1)), 1
    ),
}

TABLES = {
    "Grower": GROWER,
    "kernels": KERNELS,
    "losses": LOSSES,
    "bins": BINS,
    "samples": SAMPLES,
    "predictions": PREDICTIONS,
}


@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group, calls in TABLES.items() for name in calls]
)
def test_wrong_calls(group, name):
    with pytest.raises(WRONG):
        TABLES[group][name]()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", WRONG_FORESTS)
def test_wrong_forests(use, name):
    if use == "median" and name in ("unknown output", "output below"):
        pytest.skip("a median has one output, whichever the trees name")
    with pytest.raises(WRONG):
        USES[use](Forest(**WRONG_FORESTS[name]))


def test_right_calls():
    for use in USES.values():
        use(Forest())
    assert grown().n_trees == 1
    assert rounds().n_trees == 2
    assert proposal().codes.n_rows == N
    assert split(np.array([1, 2], np.int64), 3, 1.0, has_missing=False)[1] >= 0
