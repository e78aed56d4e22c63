"""Models for the fuzzing of files, and the checks of every model that a reader accepts."""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np

from arboost import ModelFormatError
from arboost.data.table import ingest
from arboost.losses.links import predictions
from arboost.models.files import model_file
from arboost.models.prediction import leaf_ids, predict_quantiles, table_scores
from arboost.models.predictor import Predictor
from support.paths import MODELS

FILES = sorted(MODELS.glob("*.arb"))
VALUES = [0, 1, -1, 2, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**63, 2**64, 2**70, -(2**63)]
VALUES += [0.5, -0.0, 1e308, True, False, None, "", "nan", "inf", "x" * 50, "left", [], {}]
VALUES += [[0], [[]], {"a": 0}, [None], 10**30, "\ud800", "1e999"]

_MOST_COLUMNS = 1000
_MOST_SECONDS = 5.0
# Bytes per byte of the file: packed zeros are 64 numbers a byte, JSON becomes Python objects.
_MOST_MEMORY = 1000
_BASE_MEMORY = 4 * 2**20


def read_or_refuse(read, data):
    """Return the reader's model, or None where the reader raises a ModelFormatError.

    Other errors, hangs and memory out of proportion to the data are failures.
    """
    model, message = None, "cannot read "
    tracemalloc.start()
    start = time.process_time()
    try:
        model = read(data)
    except ModelFormatError as error:
        message = str(error)
    seconds = time.process_time() - start  # CPU time: a busy machine is no hang
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message.startswith("cannot read ")
    assert len(message) < 1000
    assert seconds < _MOST_SECONDS
    assert peak < _BASE_MEMORY + _MOST_MEMORY * len(data)
    return model


def use(model) -> None:
    """Save, predict and convert a model; any predictions are valid, a crash is not."""
    model = Predictor(**model.fields())
    assert model_file.to_bytes(model)
    n_features = model.schema.n_features
    if not 0 < n_features < _MOST_COLUMNS:
        return
    X = np.zeros((3, n_features))
    X[1], X[2] = np.nan, np.inf
    table = ingest(X)
    table = type(table)(table.columns, model.schema)  # values become level codes in categories
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = table_scores(model, table, n_threads=1)
        assert scores.shape == (3, model.n_outputs)
        assert len(predictions(model, scores)) == 3
        assert leaf_ids(model, table, n_threads=1).shape == (3, model.n_trees)
        if model.distributions is not None:
            found = predict_quantiles(model, table, [0.0, 0.5, 1.0], n_threads=1)
            assert found.shape == (3, 3)
    assert Predictor.from_json(model.to_json()).n_trees == model.n_trees
