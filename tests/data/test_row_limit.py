"""One limit of rows, checked before any work; broadcast arrays take no memory."""

import numpy as np
import pytest

import arboost
from arboost.backend import core
from arboost.data.table import ingest

sparse = pytest.importorskip("scipy.sparse")

TOO_MANY = core.most_rows + 1
MESSAGE = r"536,870,912 rows, but at most 536,870,911 are allowed"


def flat(n_rows, dtype=np.float32):
    return np.broadcast_to(np.zeros(1, dtype), (n_rows, 1))


def test_one_limit():
    assert core.most_rows == 2**29 - 1


@pytest.mark.parametrize(
    "estimator",
    [
        arboost.GradientBoostingRegressor(),
        arboost.RandomForestRegressor(),
        arboost.DecisionTreeRegressor(),
        arboost.AdaBoostRegressor(),
    ],
)
def test_fits_refuse_more_rows_at_once(estimator):
    with pytest.raises(ValueError, match=MESSAGE):
        estimator.fit(flat(TOO_MANY), flat(TOO_MANY)[:, 0])


@pytest.mark.parametrize("tree_method", ["hist", "exact"])
def test_datasets(tree_method):
    with pytest.raises(ValueError, match=MESSAGE):
        arboost.Dataset(flat(TOO_MANY), tree_method=tree_method)


def test_sparse_tables_of_fits_and_predictions():
    empty = sparse.csc_array((TOO_MANY, 1), dtype=np.float32)
    with pytest.raises(ValueError, match=MESSAGE):
        arboost.Dataset(empty)
    schema = ingest(np.zeros((2, 1))).schema
    with pytest.raises(ValueError, match=MESSAGE):
        ingest(empty, schema)


def test_dense_tables_of_predictions_have_no_limit():
    schema = ingest(np.zeros((2, 1))).schema
    assert ingest(flat(TOO_MANY), schema).n_rows == TOO_MANY


def wide(n_rows):
    columns = core.Columns(n_rows)
    columns.add_missing()
    return columns


@pytest.mark.parametrize(
    "use",
    [
        lambda: core.quantiles(wide(TOO_MANY), None, None, 255, 1),
        lambda: core.encode(wide(TOO_MANY), None, [np.zeros(0)], 1),
        lambda: core.rank(wide(TOO_MANY), None, 1),
        lambda: core.plan_storage(
            wide(TOO_MANY), None, [np.zeros(0)], 1, [], bundling=True, max_conflict_rate=0.0
        ),
        lambda: core.Gradients(TOO_MANY, 1, by_row=False),
        lambda: core.Sample().draw(TOO_MANY, 0.5, 1, 1, 1),
        lambda: core.Sample().draw_with_replacement(TOO_MANY, 5, 1, 1, 1),
        lambda: wide(TOO_MANY).add_sparse(np.zeros(0, np.uint32), np.zeros(0), 0.0),
    ],
)
def test_the_core_has_the_same_limit(use):
    with pytest.raises(ValueError, match="536870912 rows, but at most 536870911 are allowed"):
        use()
