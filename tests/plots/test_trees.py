"""Trees as text and as DOT: every node with its condition, cover and values, safe for any name."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from arboost.data.levels import Levels
from arboost.models.model import Model
from arboost.models.tree_nodes import tree_table
from arboost.plots.trees import TreePicture, tree_dot, tree_svg, tree_text
from arboost.text import number_text
from arboost.trees.forest import Forest
from support.drawn_trees import HOSTILE, full_tree, lines, model_of, names_schema, stump
from support.fitted_models import fitted
from support.random_models import make_model, random_forest


def test_classes_as_text():
    value = [[0.5, 0.25, 0.25], [0.75, 0.0, 0.25], [0.0, 1.0, 0.0]]
    model = model_of(stump(value), names_schema("age"), classes=np.array(["a", "b", "c"]))
    assert lines(model) == [
        "tree 0: 2 leaves, depth 1",
        "node                          cover  class      a       b      c",
        "  0  all rows                     8      a  50.0%   25.0%  25.0%",
        "  1* ├─ age <= 2.5                6      a  75.0%    0.0%  25.0%",
        "  2* └─ age > 2.5 or missing      2      b   0.0%  100.0%   0.0%",
    ]


def test_rounding_is_printed_as_zero():
    """Values and thresholds that float32 cannot tell from 0 next to the others of the model."""
    model = model_of(stump([[0.0], [9.3e-10], [1.5]]), names_schema("age"))
    assert lines(model)[3].split()[-1] == "0"
    assert ">0<" in tree_svg(model)
    model = model_of(stump([[0.0], [9.3e-10], [1.5e-9]]), names_schema("age"))
    assert lines(model)[3].split()[-1] == "9.3e-10"
    forest = full_tree(np.random.default_rng(0), 2, 1)
    for others, expected in ((1.5, "age <= 0"), (1.5e-9, "age <= 9.3e-10")):
        threshold = np.array([9.3e-10, others, -others, 0, 0, 0, 0])
        model = model_of(replace(forest, threshold=threshold), names_schema("age"))
        assert expected in conditions(model)


def test_two_classes_in_one_output():
    model = model_of(stump([[0.0], [-0.5], [1.0]]), names_schema("age"), classes=np.array([3, 7]))
    shown = lines(model, show_missing=False)
    assert shown[1].split() == ["node", "cover", "class", "3", "7"]
    # Of equal probabilities the first class wins, as in predictions.
    assert shown[2].split() == ["0", "all", "rows", "8", "3", "50.0%", "50.0%"]
    assert shown[3].split()[-3:] == ["3", "75.0%", "25.0%"]
    assert shown[4].split()[-3:] == ["7", "0.0%", "100.0%"]


def test_several_targets():
    value = [[0.0, 0.2, 0.3, 0.5], [1.0, 0.6, 0.4, 0.0], [-1.0, 0.0, 0.0, 1.0]]
    classes = (np.array(["no", "yes"]), np.array([0, 1, 2]))
    model = model_of(
        stump(value), names_schema("age"), classes=classes, targets=(1, 3), link="shares"
    )
    shown = lines(model)
    assert re.split(" {2,}", shown[1])[2:] == [
        "target 0 class", "no", "yes", "target 1 class", "0", "1", "2",
    ]  # fmt: skip
    assert shown[3].split()[-7:] == ["yes", "0.0%", "100.0%", "0", "60.0%", "40.0%", "0.0%"]
    assert "target 1, 2: 100.0%" in tree_svg(model)
    numbers = model_of(
        stump([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), names_schema("a"), targets=(1, 1)
    )
    assert lines(numbers)[1].split("  ")[-2:] == ["target 0", "target 1"]


def test_many_classes_show_the_most_probable_alone():
    value = np.eye(30)[[4, 29, 0]]
    model = model_of(stump(value), names_schema("age"), classes=np.arange(30))
    shown = lines(model)
    assert shown[1].split() == ["node", "cover", "class", "share"]
    assert shown[3].split()[-2:] == ["29", "100.0%"]
    assert "18 more" in tree_svg(model)


def test_base_scores_count_where_trees_are_averaged():
    forest = stump([[0.0], [1.0], [-2.0]])
    model = Model(
        **{**model_of(forest, names_schema("a")).fields(), "base_score": np.array([10.0])}
    )
    assert [line.split()[-1] for line in lines(model)[2:]] == ["10", "11", "8"]
    added = Model(**{**model.fields(), "combine": "sum"})
    assert [line.split()[-1] for line in lines(added)[2:]] == ["0", "1", "-2"]


def test_trees_for_one_of_several_outputs(rng):
    model = make_model(random_forest(rng, 6, 4, 3, 1), 4, 3, trees_per_round=3)
    assert lines(model, tree=4)[0].endswith(", for 1")
    wide = make_model(random_forest(rng, 2, 4, 3, 3), 4, 3)
    assert lines(wide)[1].split() == ["node", "cover", "0", "1", "2"]


LEVELS = ("ant", "bee", "cow", "dog")


def level_model(codes, n_levels=4, *, default_left=False):
    words = [0, 0, 0, 0]
    for code in codes:
        words[code // 64] |= 1 << code % 64
    labels = LEVELS[:n_levels] if n_levels <= 4 else [f"level {i:03}" for i in range(n_levels)]
    text = "".join(labels).encode()
    offsets = np.cumsum([0, *map(len, labels)])
    levels = Levels("string", np.frombuffer(text, np.uint8), offsets)
    forest = stump([[0.0], [1.0], [2.0]], level_sets=[words], default_left=default_left)
    return model_of(forest, names_schema("pet", levels=(levels,)))


def conditions(model, **options):
    return [re.split(" {2,}", line.split("─ ")[1])[0] for line in lines(model, **options)[3:]]


def test_sets_of_levels():
    assert conditions(level_model([0, 2])) == ["pet in {ant, cow}", "pet in {bee, dog} or missing"]
    assert conditions(level_model([1], default_left=True)) == [
        "pet is bee or missing",
        "pet in {ant, cow, dog}",
    ]
    # Codes beyond the levels of the fit have no names.
    assert conditions(level_model([0, 1, 3, 77, 254])) == [
        "pet in {ant, bee, dog}",
        "pet is cow or missing",
    ]
    assert conditions(level_model([], default_left=True)) == ["pet is missing", "pet is known"]
    assert conditions(level_model(range(4))) == ["pet is known", "pet is missing"]
    left, right = conditions(level_model(range(0, 200, 2), 200), max_levels=2)
    assert left == "pet in {level 000, level 002, 98 more}"
    assert right == "pet in {level 001, level 003, 98 more} or missing"
    picture = tree_svg(level_model(range(0, 200, 2), 200))
    assert ">pet in {level 000, level 002, level 004, 97 more}<" in picture


def test_numbers_as_levels():
    levels = Levels("number", np.array([-1.0, 2.5, 10.0]))
    forest = stump([[0.0], [1.0], [2.0]], level_sets=[[0b101, 0, 0, 0]])
    model = model_of(forest, names_schema("size", levels=(levels,)))
    assert conditions(model, show_missing=False) == ["size in {-1, 10}", "size is 2.5"]


def test_target_encoded_levels():
    levels = Levels("number", np.arange(3.0), statistic=np.array([0.1, 0.5, 0.2]))
    model = model_of(
        stump([[0.0], [1.0], [2.0]], threshold=0.3), names_schema("zip", levels=(levels,))
    )
    assert conditions(model)[0] == "target mean of zip <= 0.3"


def test_groups_of_levels():
    """A cut in the order of the groups is one of their means; any other set lists the levels."""
    levels = Levels(
        "string",
        np.frombuffer(b"abcde", np.uint8),
        np.arange(6),
        groups=np.array([2, 0, 1, 1, 255], np.uint8),
        group_means=np.array([-1.0, 0.5, 2.5]),
        shared_groups=np.array([1], np.uint8),
    )
    found = []
    for words in (0b011, 0b101, 0b010):
        forest = stump([[0.0], [1.0], [2.0]], level_sets=[[words, 0, 0, 0]])
        model = model_of(forest, names_schema("city", levels=(levels,)))
        found.append(conditions(model, show_missing=False))
        assert tree_table(model)["levels"][0] == [
            label for label, group in zip("abcd", [2, 0, 1, 1], strict=True) if words >> group & 1
        ]
    assert found == [
        ["target mean of city <= 1.5", "target mean of city > 1.5"],
        ["city in {a, b}", "city in {c, d}"],
        ["city in {c, d}", "city in {a, b}"],
    ]


@pytest.mark.parametrize(
    ("threshold", "default_left", "expected"),
    [
        (np.inf, False, ["a is known", "a is missing"]),
        (np.inf, True, ["a <= inf or missing", "a > inf"]),
        (-np.inf, True, ["a <= -inf or missing", "a > -inf"]),
        (0.1234567, True, ["a <= 0.1235 or missing", "a > 0.1235"]),
    ],
)
def test_missing_values_and_odd_thresholds(threshold, default_left, expected):
    forest = stump([[0.0], [1.0], [2.0]], threshold=threshold, default_left=default_left)
    model = model_of(forest, names_schema("a"))
    assert conditions(model) == expected
    labels = re.findall(r">((?:yes|no)[^<]*)</text>", tree_svg(model))
    if expected[0] == "a is known":
        assert labels == ["yes", "no"]
    else:
        assert labels == ["yes or missing", "no"]
    assert re.findall(r">((?:yes|no)[^<]*)</text>", tree_svg(model, show_missing=False)) == [
        "yes",
        "no",
    ]


@pytest.mark.parametrize(
    ("unit", "seconds", "expected"),
    [
        ("datetime", 86400.0 * 365, "1971-01-01"),
        ("datetime", 1e9, "2001-09-09 01:46:40"),
        ("datetime", -0.5, "1969-12-31 23:59:59"),
        ("duration", 90061.0, "1 d 01:01:01"),
        ("duration", 61.0, "00:01:01"),
        ("duration", -3600.0, "-1 d 23:00:00"),
        ("time", 45296.5, "12:34:56.5"),
        ("", 1e9, "1,000,000,000"),
    ],
)
def test_times(unit, seconds, expected):
    forest = stump([[0.0], [1.0], [2.0]], threshold=seconds)
    model = model_of(forest, names_schema("t", units=(unit,)))
    assert conditions(model)[0] == f"t <= {expected}"


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0.0, 4, "0"),
        (-0.0, 4, "0"),
        (2024.5, 4, "2024"),
        (9999.96, 3, "10,000"),
        (99999.0, 3, "99,999"),
        (-1234567.8, 4, "-1,234,568"),
        (0.00012345, 4, "0.0001234"),
        (0.000012345, 4, "1.234e-05"),
        (-2.0, 4, "-2"),
        (9.99996, 4, "10"),
        (1e300, 4, "1e+300"),
        (5e-324, 4, "4.941e-324"),
        (123456789012345678.0, 4, "1.235e+17"),
        (np.inf, 4, "inf"),
    ],
)
def test_numbers(value, digits, expected):
    assert number_text(value, digits) == expected


def test_every_node_has_its_line(rng):
    forest = random_forest(rng, 8, 5, 1, 1, n_splits=40, categories=[2])
    model = make_model(forest, 5, 1, categories=[2])
    for tree in range(8):
        shown = lines(model, tree=tree, max_depth=None)
        numbers = [int(re.match(r" *(\d+)", line)[1]) for line in shown[2:]]
        n_nodes = int(np.diff(forest.tree_start)[tree])
        assert sorted(numbers) == list(range(n_nodes))
        leaves = [int(re.match(r" *(\d+)\*", line)[1]) for line in shown[2:] if "*" in line[:6]]
        left = forest.single_tree(tree).left
        assert sorted(leaves) == np.flatnonzero(left == 0).tolist()
        for at, node in enumerate(numbers):  # left branches come first, right below their parent
            if left[node]:
                assert numbers[at + 1] == left[node]


def test_depths_are_cut(rng):
    model = make_model(random_forest(rng, 8, 5, 1, 1, n_splits=40), 5, 1)
    tree = int(np.argmax(np.diff(model.forest.tree_start)))
    n_leaves = int((model.forest.single_tree(tree).left == 0).sum())
    for max_depth in (0, 1, 3):
        shown = lines(model, tree=tree, max_depth=max_depth)
        hidden = sum(int(one) for one in re.findall(r"\.\.\. (\d+) leaves", "\n".join(shown)))
        starred = sum(bool(re.match(r" *\d+\*", line)) for line in shown)
        assert hidden + starred == n_leaves
        picture = tree_svg(model, tree, max_depth=max_depth)
        assert sum(int(one) for one in re.findall(r">(\d+) leaves</text>", picture)) == hidden
    assert "... " not in "\n".join(lines(model, tree=tree, max_depth=None))


def test_deep_trees_need_no_deep_calls():
    n = 1200
    left = np.zeros(2 * n + 1, np.int32)
    left[np.concatenate([[0], np.arange(2, 2 * n, 2)])] = np.arange(1, 2 * n, 2)
    zeros = np.zeros(2 * n + 1)
    forest = Forest(
        tree_start=[0, 2 * n + 1],
        feature=zeros,
        threshold=zeros,
        left=left,
        default_left=zeros.astype(bool),
        value=zeros[:, None],
        gain=zeros,
        cover=zeros,
        output=[0],
    )
    model = model_of(forest, names_schema("a"))
    assert len(lines(model, max_depth=None)) == 2 * n + 3
    assert tree_svg(model, max_depth=50).count("<path") == 101


def test_single_leaf_and_notebooks():
    leaf = stump([[0.5], [1.0], [2.0]])
    model = model_of(
        Forest(
            **{
                name: getattr(leaf, name)[:1] if name != "tree_start" else [0, 1]
                for name in (
                    "tree_start",
                    "feature",
                    "threshold",
                    "default_left",
                    "value",
                    "gain",
                    "cover",
                    "output",
                )
            },
            left=[0],
        ),
        names_schema("a"),
    )
    assert lines(model)[0] == "tree 0: 1 leaf, depth 0"
    picture = tree_svg(model)
    assert isinstance(picture, TreePicture)
    assert picture._repr_svg_() == str(picture)
    assert picture.count("<g>") == 1


def test_bad_input(rng):
    model = make_model(random_forest(rng, 3, 4, 1, 1), 4, 1)
    for draw in (tree_text, tree_svg):
        with pytest.raises(ValueError, match=r"tree=3 is not allowed: the model has 3 trees"):
            draw(model, 3)
        with pytest.raises(ValueError, match="tree=-1"):
            draw(model, -1)
        with pytest.raises(ValueError, match="max_depth=-1"):
            draw(model, max_depth=-1)
        for name in ("max_depth", "precision"):
            with pytest.raises(TypeError, match=f"{name}=1.5 .* must be an integer"):
                draw(model, **{name: 1.5})
        with pytest.raises(ValueError, match=r"precision=0 .* at least 1"):
            draw(model, precision=0)
        with pytest.raises(ValueError, match="no trees"):
            draw(model.truncated(0))


# DOT


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
