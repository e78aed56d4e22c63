"""Corrupted sparse matrices of scipy raise ValueError wherever X goes; none is read wrongly."""

import numpy as np
import pytest

import arboost
from arboost.data.table import ingest
from support.damaged_sparse import damaged, plain_matrix, reading

sparse = pytest.importorskip("scipy.sparse")

RNG = np.random.default_rng(0)
DENSE = RNG.integers(0, 5, (40, 4)).astype(float)
Y = DENSE[:, 0] - DENSE[:, 2]
LABELS = (Y > 0).astype(int)


def read(table):
    columns = ingest(table).columns
    return np.column_stack([columns.read(i) for i in range(columns.n_columns)])


@pytest.mark.parametrize("make", ["array", "matrix"])
@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_damaged_arrays(kind, make):
    n_refused = 0
    for what, matrix in damaged(kind, make):
        expected = reading(matrix)
        if expected is None:
            n_refused += 1
            with pytest.raises((ValueError, TypeError)) as raised:
                ingest(matrix)
            # Types of values are refused as those of dense tables are.
            assert issubclass(raised.type, ValueError) or "must be of numbers" in str(
                raised.value
            ), what
        else:
            np.testing.assert_array_equal(read(matrix), expected, err_msg=what)
    assert n_refused > 30


def lil(change):
    matrix = plain_matrix("lil")
    change(matrix)
    return matrix


def dok(key, value=1.0):
    matrix = plain_matrix("dok")
    matrix._dict[key] = value
    return matrix


def put(matrix, name, value):
    setattr(matrix, name, value)


def as_rows(*rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


DAMAGED_LISTS = {
    "column beyond": lambda m: m.rows[0].__setitem__(0, 4),
    "column below": lambda m: m.rows[0].__setitem__(0, -1),
    "huge column": lambda m: m.rows[0].__setitem__(0, 2**70),
    "column of 33 bits": lambda m: m.rows[0].__setitem__(0, 2**32 + 1),
    "column of text": lambda m: m.rows[0].__setitem__(0, "a"),
    "column between": lambda m: m.rows[0].__setitem__(0, 0.5),
    "value of text": lambda m: m.data[0].__setitem__(0, "a"),
    "value of list": lambda m: m.data[0].__setitem__(0, [1.0, 2.0]),
    "more columns": lambda m: m.rows[0].extend([1, 2, 3]),
    "more values": lambda m: m.data[0].extend([1.0, 2.0, 3.0]),
    "fewer values": lambda m: m.data[0].clear(),
    "no list": lambda m: m.rows.__setitem__(0, None),
    "a tuple": lambda m: m.data.__setitem__(0, (1.0,)),
    "fewer rows": lambda m: put(m, "rows", m.rows[:3]),
    "fewer rows of values": lambda m: put(m, "data", m.data[:3]),
    "no array": lambda m: put(m, "rows", m.rows.tolist()),
    "two dimensions": lambda m: put(m, "data", m.data.reshape(2, 3)),
    "shape": lambda m: put(m, "_shape", (9, 4)),
    "columns": lambda m: put(m, "_shape", (6, 1)),
}


@pytest.mark.parametrize("name", DAMAGED_LISTS)
def test_damaged_lists_of_rows(name):
    with pytest.raises(ValueError, match="corrupted sparse matrix of format 'lil'"):
        ingest(lil(DAMAGED_LISTS[name]))


@pytest.mark.parametrize(
    "key",
    [(6, 0), (0, 4), (-1, 0), (0, -1), (2**32, 0), (2**70, 0), (1,), (1, 2, 3), 5, "ab", (0.5, 1)],
)
def test_damaged_keys(key):
    with pytest.raises(ValueError, match="corrupted sparse matrix of format 'dok'"):
        ingest(dok(key))


@pytest.mark.parametrize("value", ["a", [1.0, 2.0], None])
def test_damaged_values_of_keys(value):
    if value is None:  # NumPy reads None as NaN
        assert np.isnan(read(dok((0, 0), value))[0, 0])
        return
    with pytest.raises(ValueError, match="corrupted sparse matrix of format 'dok'"):
        ingest(dok((0, 0), value))


@pytest.mark.parametrize("blocks", [(2, 0, 2), (2, 4, 4), (2, 2, 3), (2, 2)])
def test_blocks_that_do_not_divide_the_shape(blocks):
    matrix = plain_matrix("bsr")
    matrix.data = np.ones(blocks)
    with pytest.raises(ValueError, match="corrupted sparse matrix of format 'bsr'"):
        ingest(matrix)


def test_diagonals_outside_the_matrix_are_legal():
    matrix = sparse.dia_array((np.ones((3, 4)), [0, 100, -50]), shape=(6, 4))
    matrix.offsets = np.array([0, 2**32 + 1, -(2**33)])
    np.testing.assert_array_equal(read(matrix), np.eye(6, 4))


def test_given_matrices_are_left_as_they_are():
    for kind in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        matrix = plain_matrix(kind)
        before = matrix.copy()
        ingest(matrix)
        assert (matrix != before).nnz == 0


def corrupted(n_rows=40):
    """Return matrices of each kind of damage, with as many rows as the target."""
    starts = sparse.csr_matrix(DENSE)
    starts.indptr[1] = 10**7
    indices = sparse.csc_array(DENSE)
    indices.indices = indices.indices.astype(np.int64)
    indices.indices[0] += 2**32
    ends = sparse.csr_array(DENSE)
    ends.indptr[-1] = -3
    places = sparse.coo_array(DENSE)
    places.coords = (places.coords[0], places.coords[1] + 7)
    shape = sparse.csc_matrix(DENSE)
    shape._shape = (n_rows, 9)
    empty = sparse.csr_matrix(DENSE)
    empty.indptr = empty.indptr[:0]
    blocks = sparse.bsr_array(DENSE, blocksize=(2, 2))
    blocks.indices[0] = 99
    return [starts, indices, ends, places, shape, empty, blocks]


def doors():
    """Return functions of X: all places where a user may pass it."""
    booster = arboost.GradientBoostingClassifier(n_estimators=3).fit(DENSE, LABELS)
    forest = arboost.RandomForestClassifier(n_estimators=3).fit(DENSE, LABELS)
    bagging = arboost.BaggingClassifier(n_estimators=3).fit(DENSE, LABELS)
    members = [("a", arboost.DecisionTreeClassifier()), ("b", forest)]
    stacking = arboost.StackingClassifier(members, cv=2).fit(DENSE, LABELS)
    fitted = {"booster": booster, "forest": forest, "bagging": bagging, "stacking": stacking}
    found = {
        f"{name}, {method}": getattr(model, method)
        for name, model in fitted.items()
        for method in ("predict", "predict_proba", "predict_log_proba", "apply", "shap_values")
        if hasattr(model, method)
    }
    for name, model in fitted.items():
        found[f"{name}, fit"] = lambda X, model=model: type(model)(
            **model.get_params(deep=False)
        ).fit(X, LABELS)
        found[f"{name}, score"] = lambda X, model=model: model.score(X, LABELS)
    for kind in (arboost.AdaBoostClassifier, arboost.ExtraTreesClassifier):
        found[kind.__name__] = lambda X, kind=kind: kind(n_estimators=2).fit(X, LABELS)
    found |= {
        "AdaBoost of estimators": lambda X: arboost.AdaBoostClassifier(
            arboost.DecisionTreeClassifier(max_depth=1), n_estimators=2
        ).fit(X, LABELS),
        "validation set": lambda X: arboost.GradientBoostingClassifier(n_estimators=2).fit(
            DENSE, LABELS, X_val=X, y_val=LABELS
        ),
        "staged": lambda X: list(booster.staged_predict(X)),
        "predictor": booster.model_.predict,
        "decision path": forest.decision_path,
        "partial dependence": lambda X: booster.model_.partial_dependence(X, [0]),
        "permutation": lambda X: arboost.permutation_importances(booster, X, LABELS),
        "cv": lambda X: arboost.cv(arboost.GradientBoostingClassifier(n_estimators=2), X, LABELS),
        "Dataset": arboost.Dataset,
        "passthrough": arboost.StackingClassifier(members, cv=2, passthrough=True)
        .fit(DENSE, LABELS)
        .predict,
    }
    return found


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
def test_every_door():
    for name, door in doors().items():
        for matrix in corrupted():
            with pytest.raises(ValueError, match="corrupted sparse matrix") as raised:
                door(matrix)
            assert issubclass(raised.type, ValueError), name
