"""Trees as columns and as DOT: complete for predictions, and safe for any feature name."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import arboost
from arboost.plots.trees import tree_dot
from support.drawn_trees import HOSTILE, full_tree, model_of, names_schema, stump
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


def parsed(text):
    """Return the statements of DOT by its grammar: [node or edge, attributes]."""
    token = re.compile(r'"(?:[^"\\]|\\.)*"|[\w]+|->|[\[\]{}=,;]|\s+', re.DOTALL)
    tokens, at = [], 0
    while at < len(text):
        match = token.match(text, at)
        assert match, text[at : at + 40]
        tokens.append(match.group())
        at = match.end()
    words = [one for one in tokens if not one.isspace()]
    assert words[:3] == ["digraph", "tree", "{"]
    assert words[-1] == "}"
    statements, current = [], []
    for word in words[3:-1]:
        if word == ";":
            statements.append(current)
            current = []
        else:
            current.append(word)
    assert not current
    return statements


def shown(label):
    """Return the lines that Graphviz shows for a label, with escapes and entities resolved."""
    marked = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], label[1:-1])
    return [line.replace("&amp;", "&") for line in marked.split("\n")]


def test_dot_has_all_nodes_and_edges(rng):
    model, _ = fitted("boosted", rng)
    statements = parsed(model.tree_dot(2))
    table = pd.DataFrame(model.tree_table()).query("tree == 2")
    edges = {(one[0], one[2]) for one in statements if one[1] == "->"}
    splits = table[table["left"] >= 0]
    pairs = splits[["node", "left", "right"]].astype(str).to_numpy()
    assert edges == {(a, b) for a, *both in pairs for b in both}
    nodes = {one[0] for one in statements if one[1] == "[" and one[0].isdigit()}
    assert nodes == set(table["node"].astype(str))


def test_hostile_names_in_dot(rng):
    names = [name for name in HOSTILE if name]
    model = model_of(full_tree(rng, 4, len(names)), names_schema(*names))
    text = tree_dot(model, show_missing=False)
    text.encode("utf-8")
    labels = [shown(one[4]) for one in parsed(text) if one[0].isdigit() and one[1] == "["]
    assert all(len(label) in (2, 3) for label in labels)
    questions = [label[0] for label in labels if len(label) == 3]
    for name in ("<script>alert(1)</script>", "a & b", "\"quoted\" 'names'", "line\\nbreak\\ttab"):
        assert any(one.startswith(f"{name} <=") for one in questions)


def test_dot_of_part_of_a_tree(rng):
    model = model_of(full_tree(rng, 4, 2), names_schema("a", "b"))
    text = tree_dot(model, max_depth=1)
    assert text.count('leaves", style') == 2
    assert text.count("->") == 4
    with pytest.raises(ValueError, match="max_depth=-1"):
        tree_dot(model, max_depth=-1)
    with pytest.raises(ValueError, match="tree=1 is not allowed"):
        tree_dot(model, 1)


def test_levels_in_dot():
    model, _ = fitted("boosted", np.random.default_rng(0))
    dots = [model.tree_dot(tree) for tree in range(model.n_trees)]
    assert any(re.search(r'label="city (is Oslo|in {)', text) for text in dots)
    only = model_of(stump([[1.0], [2.0], [3.0]], default_left=True), names_schema("a"))
    assert 'label="yes or missing"' in tree_dot(only)


def test_methods_of_a_model_draw_what_the_functions_do(rng):
    model, _ = fitted("forest", rng)
    assert model.tree_text(1, max_depth=2).startswith("tree 1 of 8: ")
    assert model.tree_svg(1).startswith("<svg")
    assert model.tree_svg(1)._repr_svg_() == model.tree_svg(1)
