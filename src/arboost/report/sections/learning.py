"""Training of a model: learning curves, AdaBoost's bounds and margins, out-of-bag curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

_STAGES = 50  # of a curve that is computed here
_STAGED_ROWS = 3000
_STAGED_WORK = 3e6  # rows x trees, at most
_FEWEST_ROWS = 100
_MOST_MARGINS = 200
_TWO = 2
_OUT_OF_BAG = {"error": "error rate", "rmse": "RMSE"}


def learning_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the learning curves of a fit; of a model without any, scores after each round."""
    model = inputs.models[place]
    runs = model.history.get("runs")
    return _recorded(model, runs) if runs else _staged(inputs, place)


def _recorded(model: ReportModel, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metrics that a fit has recorded, by evaluation set."""
    metric = runs[0]["curves"][0]["metric"]
    series: list[dict[str, Any]] = []
    for run in runs:
        for curve in run["curves"]:
            if curve["metric"] != metric:
                continue
            y = rounded(_numbers(curve["values"]))
            series.append({"name": curve["set"], "x": run["rounds"], "y": y})
    return {
        "x": "rounds",
        "y": metric,
        "series": series,
        "best": runs[-1]["best"],
        "note": _recorded_note(model, runs),
    }


def _recorded_note(model: ReportModel, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence on recorded curves, whose rounds may be others than those of the model.

    A search for rounds counts its own, and continued training records those that it adds.
    """
    first, best = runs[0]["rounds"][0], runs[-1]["best"]
    note = "Recorded during the fit"
    if first > 1:
        note += f", which continued the training of {first - 1:,} rounds"
    if best is not None and best != model.n_rounds:
        note += f"; the model has {model.n_rounds:,} rounds"
    return f"{note}."


def _numbers(values: Sequence[float | None]) -> Floats:
    """Return numbers of a history as an array, with NaN for None."""
    return np.array(values, np.float64)


def _staged(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the score of the first rounds of a model on a sample of the rows."""
    model = inputs.models[place]
    engine = model.engine
    if engine is None or engine.n_rounds < _TWO or not model.is_whole:
        return None
    most = int(np.clip(_STAGED_WORK / engine.n_trees, _FEWEST_ROWS, _STAGED_ROWS))
    rows = sample_rows(inputs.n_rows, most)
    sample = inputs.tables[place].sample(rows)
    wanted = set((_thinned(engine.n_rounds, _STAGES) + 1).tolist())
    weight = None if inputs.weight is None else inputs.weight[rows]
    rate, name = _rating(model, inputs.truth[rows], weight)
    x, y = [], []
    for number, raw in enumerate(model.stages(sample), start=1):
        if number in wanted:
            x.append(number)
            y.append(rate(raw))
    series = [{"name": "rows of this report", "x": x, "y": rounded(y)}]
    return {
        "x": "trees" if engine.combine == "mean" else "rounds",
        "y": name,
        "series": series,
        "best": None,
        "note": f"Score after each round on this report's {len(rows):,} rows, which were not used "
        "to choose the number of rounds.",
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
    votes = model.history.get("adaboost")
    if votes is None or votes["rounds"][-1] != model.n_rounds:  # or some of the rounds are left out
        return None
    rows = sample_rows(inputs.n_rows, _STAGED_ROWS)
    scores = model.raw(model.table(inputs.tables[place].sample(rows)))
    values = margins(scores, inputs.truth[rows], votes["vote_range"])
    margin, share = margin_distribution(values)
    some = _thinned(len(margin), _MOST_MARGINS)
    unknown = [None] * len(votes["rounds"])
    series = {
        name: rounded(_numbers(votes[name] or unknown))
        for name in ("training_error", "bound", "edge_bound")
    }
    return {
        "kind": "adaboost",
        "rounds": votes["rounds"],
        "train_error": series["training_error"],
        "bound": series["bound"],
        "edge_bound": series["edge_bound"],
        "margins": {"x": rounded(margin[some]), "cumulative": rounded(share[some])},
        "note": "The bound is that of Freund and Schapire on the training error. The margin of a "
        "row is the share of the votes for its class less that for the strongest other class; "
        f"margins are those of {len(rows):,} rows of this report.",
    }


def forest_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the out-of-bag error of a forest by its number of trees."""
    model = inputs.models[place]
    curve = model.history.get("out_of_bag")
    if curve is None or model.target_index >= len(curve["values"]):
        return None
    # A model of the first trees has the first part of the curve.
    n_points = sum(trees <= model.n_rounds for trees in curve["trees"])
    if n_points < _TWO:
        return None
    return {
        "oob": {
            "x": curve["trees"][:n_points],
            "y": rounded(_numbers(curve["values"][model.target_index][:n_points])),
            "metric": _OUT_OF_BAG[curve["metric"]],
        },
        "note": "Each training row is predicted by the trees that have not drawn it.",
    }
