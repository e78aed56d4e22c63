"""Training of a model: learning curves, AdaBoost's bounds and margins, out-of-bag curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.margins import margin_distribution, margins
from arboost.model.predict import predictions, probabilities
from arboost.report.hashing import sample_rows
from arboost.report.inputs import ReportInput
from arboost.report.models import ReportModel
from arboost.report.rounding import rounded
from arboost.report.sections.summands import log_losses

__all__ = ["forest_section", "learning_section", "theory_section"]

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_MOST_POINTS = 200  # of a recorded curve
_STAGES = 50  # of a curve that is computed here
_STAGED_ROWS = 3000
_STAGED_WORK = 3e6  # rows x trees, at most
_FEWEST_ROWS = 100
_MOST_MARGINS = 200
_TWO = 2


def learning_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the learning curves of a fit; of a model without any, scores after each round."""
    model = inputs.models[place]
    history = getattr(model.model, "evals_result_", None)
    if history:
        return _recorded(model.model, history)
    return _staged(inputs, place)


def _recorded(estimator: Any, history: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the metrics that a fit has recorded, by evaluation set."""
    metric = next(iter(next(iter(history.values()))))
    series = []
    n_rounds = 0
    for name, of in history.items():
        values = np.asarray(of.get(metric, ()), np.float64)
        if not len(values):
            continue
        n_rounds = max(n_rounds, len(values))
        kept = _thinned(len(values), _MOST_POINTS)
        series.append({"name": str(name), "x": (kept + 1).tolist(), "y": rounded(values[kept])})
    # Curves of a search for rounds, or of continued training, count other rounds than the model.
    watched = np.asarray(next(iter(list(history.values())[-1].values())), np.float64)
    best = np.flatnonzero(watched == getattr(estimator, "best_score_", np.nan))
    kept_rounds = getattr(estimator, "n_iter_", None)
    note = "Recorded during the fit."
    if kept_rounds is not None and len(best) and kept_rounds != best[0] + 1:
        note = f"Recorded during the fit; the model has {kept_rounds:,} rounds."
    return {
        "x": "rounds",
        "y": str(metric),
        "series": series,
        "best": int(best[0]) + 1 if len(best) else None,
        "note": note,
    }


def _staged(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the score of the first rounds of a model on a sample of the rows."""
    model = inputs.models[place]
    engine = model.engine
    if engine is None or engine.n_rounds < _TWO or not model.is_whole:
        return None
    most = int(np.clip(_STAGED_WORK / engine.n_trees, _FEWEST_ROWS, _STAGED_ROWS))
    rows = sample_rows(inputs.n_rows, most)
    table = model.table(inputs.tables[place].sample(rows))
    wanted = set((_thinned(engine.n_rounds, _STAGES) + 1).tolist())
    weight = None if inputs.weight is None else inputs.weight[rows]
    rate, name = _rating(model, inputs.truth[rows], weight)
    x, y = [], []
    for number, raw in enumerate(model.stages(table), start=1):
        if number in wanted:
            x.append(number)
            y.append(rate(raw))
    series = [{"name": "rows of this report", "x": x, "y": rounded(y)}]
    return {
        "x": "trees" if engine.combine == "mean" else "rounds",
        "y": name,
        "series": series,
        "best": None,
        "note": f"Scores of the first rounds on rows of this report ({len(rows):,}): they show, "
        "but did not choose, the number of rounds.",
    }


def _rating(model: ReportModel, truth: NDArray[Any], weight: Floats | None) -> tuple[Any, str]:
    """Return the loss of raw scores, and its name."""
    engine = model.engine
    assert engine is not None

    def of_classes(raw: Floats) -> float:
        proba = probabilities(engine, raw)
        own = proba[model.target_index] if isinstance(proba, list) else proba
        return float(np.average(log_losses(truth, own), weights=weight))

    def of_values(raw: Floats) -> float:
        values = np.asarray(predictions(engine, raw), np.float64)
        if values.ndim > 1:
            values = values[:, model.value_column]
        return float(np.sqrt(np.average(np.square(values - truth), weights=weight)))

    return (of_classes, "log loss") if model.classes is not None else (of_values, "RMSE")


def _thinned(length: int, most: int) -> Index:
    """Return at most so many of the indices, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.intp))


def theory_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return AdaBoost's training error with its bounds, and the margins of the rows."""
    model = inputs.models[place]
    estimator = model.model
    bound = getattr(estimator, "training_error_bound_", None)
    if bound is None or not len(estimator.vote_range_):
        return None
    errors = np.asarray(estimator.training_error_, np.float64)
    kept = _thinned(len(errors), _MOST_POINTS)
    rows = sample_rows(inputs.n_rows, _STAGED_ROWS)
    table = model.table(inputs.tables[place].sample(rows))
    scores = np.asarray(estimator.decision_function(table), np.float64)
    total = float(np.sum(estimator.vote_range_))
    values = margins(scores.reshape(len(scores), -1), inputs.truth[rows], total)
    margin, share = margin_distribution(values)
    some = _thinned(len(margin), _MOST_MARGINS)
    return {
        "kind": "adaboost",
        "rounds": (kept + 1).tolist(),
        "train_error": rounded(errors[kept]),
        "bound": rounded(np.asarray(bound, np.float64)[kept]),
        "edge_bound": rounded(np.asarray(estimator.edge_bound_, np.float64)[kept]),
        "margins": {"x": rounded(margin[some]), "cumulative": rounded(share[some])},
        "note": "The bound is that of Freund and Schapire on the training error. The margin of a "
        "row is the share of the votes for its class less that for the strongest other class; "
        f"margins are those of {len(rows):,} rows of this report.",
    }


def forest_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the out-of-bag score of a forest by its number of trees.

    It needs the training rows with their target, and the estimator itself, which knows the rows of
    each tree.
    """
    model, training = inputs.models[place], inputs.training
    engine = model.engine
    if engine is None or engine.combine != "mean" or engine.n_trees < _TWO:
        return None
    bootstrap = getattr(model.model, "bootstrap", False) is True
    if not bootstrap or not model.is_estimator or training is None or training.truth is None:
        return None
    found = _out_of_bag(inputs, place)
    if found is None:
        return None
    x, y, n_rows = found
    name = "log loss" if model.classes is not None else "RMSE"
    return {
        "oob": {"x": x.tolist(), "y": rounded(y), "metric": name},
        "note": f"Each of {n_rows:,} training rows is predicted by the trees that have not drawn "
        "it.",
    }


def _out_of_bag(inputs: ReportInput, place: int) -> tuple[Index, Floats, int] | None:
    """Return numbers of trees, the score of each, and the number of rows; None if unknown."""
    model, training = inputs.models[place], inputs.training
    engine = model.engine
    assert engine is not None
    assert training is not None
    assert training.truth is not None
    table = training.table
    try:
        samples = model.model.estimators_samples_
    except ValueError:  # a loaded forest does not know the rows of its trees
        return None
    n_drawn = engine.provenance.get("rows")
    if table.rows is not None or n_drawn != table.n_rows:  # other rows than those of the fit
        return None
    most = int(np.clip(_STAGED_WORK / engine.n_trees, _FEWEST_ROWS, _STAGED_ROWS))
    rows = sample_rows(table.n_rows, most)
    leaves = model.call("apply", model.table(table.sample(rows)))
    rate, _ = _rating(model, training.truth[rows], None)
    total = np.zeros((len(rows), engine.n_outputs))
    count = np.zeros(len(rows))
    wanted = set((_thinned(engine.n_trees, _STAGES) + 1).tolist())
    x, y = [], []
    is_drawn = np.zeros(table.n_rows, np.bool_)
    for tree, drawn in enumerate(samples):
        is_drawn[:] = False
        is_drawn[drawn] = True
        out = ~is_drawn[rows]
        node = engine.forest.tree_start[tree] + leaves[out, tree]
        total[out] += engine.forest.value[node]
        count += out
        if tree + 1 in wanted and count.all():
            x.append(tree + 1)
            y.append(rate(total / count[:, np.newaxis] + engine.base_score))
    if not x:
        return None
    return np.array(x), np.array(y), len(rows)
