"""Nodes of all trees as columns: complete for predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

import arboost
from support.fitted_models import fitted

COLUMNS = [
    "tree", "node", "depth", "feature", "threshold", "levels", "missing", "left", "right", "gain",
    "cover", "output", "value",
]  # fmt: skip


def walked(table, row):
    """Return the sum of all trees for a row (a dict), from the columns alone."""
    total = 0.0
    for _, nodes in table.groupby("tree"):
        by_node = nodes.set_index("node")
        node = by_node.loc[0]
        while node["left"] >= 0:
            value = row[node["feature"]]
            if pd.isna(value):
                goes_left = node["missing"] == "left"
            elif node["levels"] is not None:
                goes_left = value in node["levels"]
            else:
                goes_left = value <= node["threshold"]
            node = by_node.loc[node["left"] if goes_left else node["right"]]
        total += node["value"]
    return total


def test_predictions_follow_from_the_table(rng):
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200)),
            "city": rng.choice(["Bern", "Oslo", "Rome", "Wien"], 200),
        }
    )
    y = frame["age"].fillna(2).to_numpy() + (frame["city"] == "Oslo") * 3
    model = arboost.GradientBoostingRegressor(n_estimators=4).fit(frame, y).model_
    table = pd.DataFrame(model.tree_table())
    assert list(table.columns) == COLUMNS
    assert table["levels"].notna().any()
    rows = frame.head(50).to_dict("records")
    sums = [model.base_score[0] + walked(table, row) for row in rows]
    np.testing.assert_allclose(sums, model.predict(frame.head(50)), rtol=1e-12)


def test_vector_leaves_and_other_packages(rng):
    model, _ = fitted("vectors", rng)
    table = pl.DataFrame({k: v for k, v in model.tree_table().items() if k != "levels"})
    assert table.columns[-3:] == ["value_0", "value_1", "value_2"]
    assert table.height == model.forest.n_nodes
    leaves = table.filter(pl.col("left") == -1)
    assert leaves["feature"].null_count() == leaves.height


def test_nothing_that_is_returned_changes_the_model(rng):
    model, frame = fitted("forest", rng)
    before = model.predict(frame)
    for column in model.tree_table().values():
        column[:] = column[::-1].copy()
    np.testing.assert_array_equal(model.predict(frame), before)
