"""Errors and warnings of workers: those of one are those of all, and only the first warns."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import arboost
from arboost.workers import Share
from support.local_workers import run_workers
from support.shared_tables import assert_same, batches, check, read
from support.streamed import features, frame


def test_only_the_first_worker_warns():
    table = features(frame(), "number").assign(key=[f"k{i}" for i in range(1500)])
    parts = batches(table, [700, 800])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_workers(2, lambda w: read(Share(parts[w.rank], w), y="number"))
    assert [str(one.message)[:4] for one in caught if "twice" in str(one.message)] == ["Keys"]
    constant = pd.DataFrame({"a": [1.0] * 9, "b": [np.nan] * 9})
    with pytest.warns(arboost.DataWarning, match="all columns of X are constant"):
        check(constant, [4, 5])


KINDS = {
    "numbers": lambda: [1.0, 2.0],
    "strings": lambda: ["u", None],
    "nothing": lambda: [None, None],
    "missing": lambda: [np.nan, np.nan],
    "times": lambda: pd.to_datetime(["2020-01-01", None]),
    "no times": lambda: pd.to_datetime([None, None]),
    "levels": lambda: pd.Categorical(["v", None]),
    "codes": lambda: pd.Categorical([4.0, 1.0]),
    "no codes": lambda: pd.Categorical([np.nan, np.nan]),
}


@pytest.mark.parametrize("seed", range(60))
def test_random_kinds_of_columns(seed):
    """Batches of any kinds: the same schema, or an error, the same one on all workers."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(list(KINDS), 3, replace=False).tolist()
    usual = rng.choice(kinds)
    picks = [usual if rng.random() < 0.5 else rng.choice(kinds) for _ in range(7)]
    frames = [pd.DataFrame({"x": KINDS[one](), "z": [1.0, 2.0]}) for one in picks]
    size = int(rng.integers(2, 5))
    bounds = [0, *np.sort(rng.integers(0, 8, size - 1)).tolist(), 7]

    def outcome(X):
        try:
            return read(X)
        except ValueError as error:
            return str(error).partition(": ")[2]

    expected = outcome(lambda: frames)
    found = run_workers(
        size, lambda w: outcome(Share(lambda: frames[bounds[w.rank] : bounds[w.rank + 1]], w))
    )
    if isinstance(expected, str):
        assert found == [found[0]] * size
        assert isinstance(found[0], str)
    else:
        assert_same(found, expected)


BAD = {
    "columns": (lambda one: one.drop(columns="few"), "lacks the columns 'few'"),
    "kind": (lambda one: one.assign(few="x"), "'few' of X holds strings, but numbers in batches"),
    "type": (lambda one: one.assign(few=one["few"].astype("category")), "is of a categorical type"),
    "weight": (lambda one: one.assign(weight=-1.0), "negative, NaN or infinite"),
    "y": (lambda one: one.assign(number=np.nan), "missing or infinite"),
}


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("name", BAD)
def test_an_error_of_one_worker_is_that_of_all(name, rank):
    change, message = BAD[name]
    table = features(frame(), "number")
    parts = batches(table, [500, 500, 500])
    given = {"y": "number", "weight": "weight"}
    tables = [list(part()) for part in parts]
    tables[rank][1] = change(tables[rank][1])
    with pytest.raises((TypeError, ValueError)) as of_one:
        read(lambda: [one for part in tables for one in part], **given)

    def program(w):
        with pytest.raises(type(of_one.value)) as caught:
            read(Share(lambda: tables[w.rank], w), **given)
        return str(caught.value), w.rank

    started = time.monotonic()
    found = {text for text, _ in run_workers(3, program)}
    assert time.monotonic() - started < 20
    assert len(found) == 1
    assert message in found.pop()
    assert message in str(of_one.value)


def test_errors_of_sources_and_arguments(tmp_path):
    def failing(w):
        with pytest.raises(FileNotFoundError) as caught:
            read(Share(str(tmp_path / "none.parquet") if w.rank else (lambda: []), w))
        return str(caught.value)

    assert len(set(run_workers(2, failing))) == 1

    def empty(w):
        with pytest.raises(ValueError, match="X has no rows"):
            read(Share(lambda: [], w))

    run_workers(2, empty)

    def sparse(w):
        with pytest.raises(TypeError, match="batches must be dense"):
            read(Share(lambda: [scipy.sparse.eye(4) if w.rank == 1 else np.eye(4)], w))

    run_workers(3, sparse)

    def changing(w):
        passes = iter(range(9))

        def rows():
            yield np.ones((5 if w.rank == 1 and next(passes) else 4, 2))

        with pytest.raises(ValueError, match="rows"):
            read(Share(rows, w))

    run_workers(3, changing)

    def cached(w):
        with pytest.raises(ValueError, match="cache='kept' is not allowed with a Share"):
            read(Share(lambda: [np.ones((4, 2))], w), cache="kept")

    run_workers(2, cached)
