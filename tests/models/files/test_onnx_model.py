"""Models as ONNX: the same predictions by onnxruntime, for rows at every threshold and level."""

from __future__ import annotations

import numpy as np
import pytest

import arboost
from arboost.trees.forest import Forest
from support.export_models import (
    CASES,
    HOSTILE,
    hostile_names,
    model_of,
    random_median,
    random_model,
    rows_of,
    times,
    without_levels,
)
from support.random_models import make_model

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module", autouse=True)
def forget_models():
    """Let go of all models before the core is gone."""
    yield
    model_of.cache_clear()


class Session:
    """A model in onnxruntime."""

    def __init__(self, model):
        self.model = model
        self.made = model.to_onnx()
        onnx.checker.check_model(self.made, full_check=True)
        self.session = runtime.InferenceSession(
            self.made.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        self.names = [one.name for one in self.session.get_outputs()]

    def run(self, X):
        actual = self.session.run(self.names, self.inputs(X))
        return dict(zip(self.names, actual, strict=True))

    def inputs(self, X):
        given = self.session.get_inputs()
        if not self.model.schema.levels:
            return {given[0].name: np.asarray(X, np.float64)}
        columns = {}
        for feature, one in enumerate(given):
            column = X[:, [feature]]
            if one.type == "tensor(string)":
                column = np.array([["?" if x is None else x] for x in column[:, 0]], object)
                columns[one.name] = column.reshape(-1, 1)
            else:
                columns[one.name] = column.astype(np.float64)
        return columns


def check(session, X):
    model, actual = session.model, session.run(X)
    if model.kind == "regressor":
        expected = model.predict(X).reshape(len(X), model.n_outputs)
        assert actual["variable"].shape == expected.shape
        np.testing.assert_allclose(actual["variable"], expected, rtol=1e-12, atol=1e-12)
        return
    ends = [f"_{i}" for i in range(len(model.targets))] or [""]
    labels = model.predict(X).reshape(len(X), len(ends))
    probabilities = model.predict_proba(X)
    probabilities = probabilities if model.targets else [probabilities]
    assert session.names == [kind + end for end in ends for kind in ("label", "probabilities")]
    for i, end in enumerate(ends):
        assert actual[f"probabilities{end}"].shape == probabilities[i].shape
        np.testing.assert_allclose(
            actual[f"probabilities{end}"], probabilities[i], rtol=1e-11, atol=1e-300
        )
        second, first = np.sort(probabilities[i], axis=1)[:, -2:].T
        clear = first - second > 1e-9  # otherwise the order of sums decides
        assert len(X) < 10 or clear.mean() > 0.5
        assert actual[f"label{end}"].shape == (len(X),)
        assert actual[f"label{end}"][clear].tolist() == labels[clear, i].tolist()


@pytest.mark.parametrize("case", CASES)
def test_same_predictions(case, rng):
    """Many rows, one row and no row."""
    model = model_of(case)
    X = rows_of(model, rng)
    session = Session(model)
    check(session, X)
    for row in range(5):
        check(session, X[row : row + 1])
    check(session, X[:0])


@pytest.mark.parametrize(
    ("n_outputs", "width", "categories"),
    [(1, 1, ()), (3, 1, ()), (3, 3, ()), (1, 1, (1, 3)), (3, 1, (0, 1, 2, 3, 4)), (3, 3, (0, 2))],
)
@pytest.mark.parametrize("seed", range(5))
def test_random_trees(n_outputs, width, categories, seed):
    """Thresholds at infinity, lone leaves, and sets of up to 255 levels."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n_outputs=n_outputs, width=width, categories=categories)
    check(Session(model), rows_of(model, rng, 600).astype(float))


def test_times(rng):
    model, table, seconds = times(rng)
    actual = Session(model).run(seconds)["variable"][:, 0]
    np.testing.assert_allclose(actual, model.predict(table), rtol=1e-12)


def test_categories_without_levels(rng):
    model, table = without_levels(rng)
    check(Session(model), table)


@pytest.mark.parametrize("kind", ["fitted", "random"])
def test_median_is_exact(kind, rng):
    """A median is the value of one tree, not a rounded sum."""
    model = model_of("r2") if kind == "fitted" else random_median(rng)
    X = rows_of(model, rng)
    np.testing.assert_array_equal(Session(model).run(X)["variable"][:, 0], model.predict(X))


def test_names_of_inputs(rng):
    """Names are those of the columns, unless an output has that name."""
    model = hostile_names(model_of("levels"))
    object.__setattr__(model.schema, "names", ("label", "variable", "LabelEncoder"))
    session = Session(model)
    assert [one.name for one in session.session.get_inputs()] == [
        "label",
        "variable_1",
        "LabelEncoder",
    ]
    X = rows_of(model, rng)
    expected = model_of("levels").predict(X)
    np.testing.assert_allclose(session.run(X)["variable"][:, 0], expected, rtol=1e-12)


def test_hostile_names(rng):
    model = model_of("levels_of_forest")
    X = rows_of(model, rng)
    session = Session(hostile_names(model))
    assert [one.name for one in session.session.get_inputs()] == list(HOSTILE[:4])
    np.testing.assert_allclose(session.run(X)["probabilities"], model.predict_proba(X), rtol=1e-12)


def test_names_in_the_file():
    model = hostile_names(model_of("squared"))
    (one,) = model.to_onnx().metadata_props
    assert one.key == "feature_names"
    assert '"two\\nlines"' in one.value


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([0, 1], "tensor(int64)"),
        (np.array([3, 250], np.uint8), "tensor(int64)"),
        (np.array([3, 2**63 + 5], np.uint64), "tensor(uint64)"),
        ([False, True], "tensor(bool)"),
        ([1.0, 2.0], "tensor(double)"),
        (["a", "ü"], "tensor(string)"),
    ],
)
def test_types_of_labels(labels, kind):
    X = np.arange(20.0)[:, None]
    y = np.repeat(np.asarray(labels), 10)
    model = arboost.GradientBoostingClassifier(n_estimators=5, min_child_weight=0.0, verbose=0)
    session = Session(model.fit(X, y).model_)
    assert session.session.get_outputs()[0].type == kind
    check(session, X)


def chain(depth):
    """One tree that is a chain of right children."""
    left = np.zeros(2 * depth + 1, int)
    left[:-1:2] = np.arange(1, 2 * depth, 2)
    return Forest(
        tree_start=[0, len(left)],
        feature=np.zeros(len(left)),
        threshold=np.arange(len(left)) / 2,
        left=left,
        default_left=np.zeros(len(left), bool),
        value=np.arange(len(left))[:, None],
        gain=np.zeros(len(left)),
        cover=np.ones(len(left)),
        output=[0],
    )


def test_deep_trees():
    X = np.arange(-1, 1001, 0.5)[:, None]
    check(Session(make_model(chain(1000), 1, 1)), X)
    with pytest.raises(ValueError, match="more than 1000 splits one below the other"):
        make_model(chain(1001), 1, 1).to_onnx()


def test_written_to_a_file(tmp_path):
    model = model_of("squared")
    assert model.to_onnx(tmp_path / "model.onnx") is None
    assert onnx.load(tmp_path / "model.onnx") == model.to_onnx()
