"""Models and rows -> payload: the one JSON object that a report page shows.

Numbers have five significant digits (seven where users look values up in their table), and null is
NaN, infinite or unknown. A section that does not apply is null, and the page leaves it out. Arrays
that belong together have equal lengths. ``[a][b]`` is a list of lists: first index a, second b.

``format``        1
``title``         of the page; ``created``, date and time; ``arboost``, version
``task``          "binary", "multiclass" or "regression"; ``target``, name or null
``classes``       labels; of two classes the second is the positive one
``data``          ``n_rows``, ``n_train_rows``, ``n_features``, ``n_weighted``, ``notes``;
                  ``columns`` and ``target``: name, kind (number, category, time, bool), unit of
                  times, shares of missing values, n_distinct, summary; ``bins`` (edges, test,
                  train; values beyond the edges count in the end bins) or ``levels`` (names, test,
                  train, other_test, other_train, n_other); drift, the population stability index
``rows``          the sampled rows of all explorers: ``index`` in the table, ``truth``,
                  ``columns`` by name (of at most 200 features), ``n_features``
``models``        one or two, each with:
  ``name, kind, facts, params, repeat, timings, hash, notes``
                  texts on the model; params are name, value, default
  ``scores``      name, value, low, high (95 %), baseline, higher_is_better, text;
                  ``baseline_text``
  ``learning``    x, y (metric), series of (name, x, y), best, note
  ``binary``      roc, pr, calibration, thresholds (t, tp, fp, fn, tn), default_threshold, histogram
  ``multiclass``  roc of at most 10 classes, calibration of the predicted class
  ``confusion``   matrix [truth][prediction] and its names; the last may be "other"
  ``classes``     name, n, precision, recall, f1, auc
  ``regression``  points, residuals, by_prediction, quantiles, coverage of intervals
  ``segments``    metric, overall, fewest_rows, n_segments, list of (feature, segment, n, score,
                  low, high, difference, observed, predicted), the worst first
  ``importances`` feature, gain (share), permutation (increase of the loss), its deviation, shap
  ``shap``        outputs, base [output], features, values [output][feature][row], rest
                  [output][row], unit
  ``dependence``  feature, kind, grid, mean, low, high [output][point] (of 10 % to 90 % of the
                  rows), bins or levels as in ``data``; ``outputs``, their names
  ``predictions`` of the sampled rows: label, proba [row][class], value, correct, error
  ``flips``       of each sampled row null, or changes (feature, from, to), label, value and
                  distance; ``flip_rule``, the sentence on them
  ``trees``       n, shown, reason; nodes as columns: start [tree], feature (index of names or -1),
                  condition, left, right (-1 for leaves), value, cover, gain, missing (0 left, 1
                  right), output [tree], unit; leaves: base64 of uint16 [row][tree]
  ``theory``      of AdaBoost: rounds, train_error, bound, edge_bound, margins, note
  ``forest``      oob (x, y, metric), note
``comparison``    of two models: names, scores (name, a, b, difference, low, high, better), the
                  share of equal predictions (for regression their correlation), text
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from arboost import __version__
from arboost.losses.intervals import sample_rows
from arboost.report import data, effects, flips, model_sections, performance, scores
from arboost.report.inputs import ModelRows, ReportInput
from arboost.report.table import MORE_DIGITS, Sample, rounded

FORMAT = 1
_MOST_ROWS = 400  # in the explorers
_MOST_FEATURES = 200  # of a row
_MOST_PROBABILITIES = 30_000  # of all rows and classes

R = TypeVar("R")


class _Clock:
    """Seconds of each section."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[..., R], *args: Any) -> R:
        """Result of a call, whose seconds are added to a section."""
        start = time.perf_counter()
        result = work(*args)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result


def make_payload(inputs: ReportInput) -> tuple[dict[str, Any], dict[str, float]]:
    """Payload of a report, and the seconds that each section took.

    Equal inputs give equal payloads: nothing in them depends on a clock or on threads.
    """
    # Sums and differences of the largest doubles overflow: the page shows no number there.
    with np.errstate(over="ignore", invalid="ignore"):
        return _payload(inputs, _Clock())


def _payload(inputs: ReportInput, clock: _Clock) -> tuple[dict[str, Any], dict[str, float]]:
    model_rows = inputs.model_rows
    first = model_rows[0]
    fewest = min(len(effects.shap_rows(rows)) for rows in model_rows)
    sampled = sample_rows(inputs.n_rows, min(_MOST_ROWS, fewest))
    model_effects = [clock.run("importances", effects.feature_effects, rows) for rows in model_rows]
    samples = [clock.run("rows", rows.table.sample, sampled) for rows in model_rows]
    constant, base_text = scores.baseline(first)
    base = clock.run("scores", lambda: scores.score_rows(constant, has_replicates=False))
    model_scores = [clock.run("scores", scores.score_rows, rows) for rows in model_rows]
    names = [model_sections.model_name(rows.model) for rows in model_rows]
    if len(set(names)) < len(names):
        names = [f"{name} {letter}" for name, letter in zip(names, "AB", strict=True)]
    payload = {
        "format": FORMAT,
        "title": inputs.title,
        "arboost": __version__,
        "task": first.model.task,
        "target": inputs.target,
        "classes": first.classes or None,
        "data": clock.run("data", data.data_section, inputs, model_effects[0].order.tolist()),
        "rows": clock.run("rows", rows_section, first, samples[0], model_effects[0]),
        "models": [
            {
                **_model(rows, samples[k], model_effects[k], clock),
                "name": names[k],
                "scores": scores.scores_section(model_scores[k], base),
                "baseline_text": base_text,
            }
            for k, rows in enumerate(model_rows)
        ],
        "comparison": None,
    }
    if len(model_rows) > 1:
        payload["comparison"] = scores.comparison(inputs, model_scores, names)
    return payload, clock.seconds


def _model(
    rows: ModelRows, sample: Sample, importances: effects.Effects, clock: _Clock
) -> dict[str, Any]:
    """Sections of one model."""
    dependence, outputs = clock.run("dependence", effects.dependence_section, rows, importances)
    smallest, rule = clock.run("flips", flips.flips_section, rows, sample, importances)
    return {
        "kind": model_sections.model_kind(rows.model),
        **clock.run("about", model_sections.about_section, rows),
        "learning": clock.run("learning", model_sections.learning_section, rows),
        "binary": clock.run("curves", performance.binary_section, rows),
        "confusion": clock.run("curves", performance.confusion_section, rows),
        "classes": clock.run("curves", performance.classes_section, rows),
        "multiclass": clock.run("curves", performance.multiclass_section, rows),
        "regression": clock.run("curves", performance.regression_section, rows),
        "segments": clock.run("segments", performance.segments_section, rows, importances),
        "importances": effects.importances_section(rows, importances),
        "shap": clock.run("shap", effects.shap_section, rows, sample, importances),
        "dependence": dependence,
        "outputs": outputs,
        "predictions": predictions_section(rows, sample),
        "flips": smallest,
        "flip_rule": rule,
        "trees": clock.run("trees", model_sections.trees_section, rows, sample),
        "theory": clock.run("learning", model_sections.theory_section, rows),
        "forest": clock.run("learning", model_sections.forest_section, rows),
        "notes": [*importances.notes, *_left_out(rows)],
    }


def rows_section(rows: ModelRows, sample: Sample, importances: effects.Effects) -> dict[str, Any]:
    """Values of the sampled rows; of many features the important ones."""
    features = np.arange(len(sample.columns))
    if len(features) > _MOST_FEATURES:
        features = np.sort(importances.order[:_MOST_FEATURES])
    columns = [sample.columns[feature] for feature in features.tolist()]
    truth = rows.truth[sample.rows]
    return {
        "index": rows.inputs.rows[sample.rows].tolist(),
        "truth": _labels(rows, truth) if rows.classes else rounded(truth, MORE_DIGITS),
        "columns": {column.name: column.json_values() for column in columns},
        "n_features": len(sample.columns),
    }


def predictions_section(rows: ModelRows, sample: Sample) -> dict[str, Any]:
    """Predictions of the sampled rows."""
    predicted, truth = rows.predicted.take(sample.rows), rows.truth[sample.rows]
    section: dict[str, Any] = dict.fromkeys(("label", "proba", "value", "correct", "error"))
    if predicted.values is not None:
        section["label"] = section["value"] = rounded(predicted.values, MORE_DIGITS)
        section["error"] = rounded(predicted.values - truth)
        return section
    assert predicted.codes is not None
    section["label"] = _labels(rows, predicted.codes)
    section["correct"] = (predicted.codes == truth).tolist()
    # Of many classes, the label is enough.
    if predicted.proba is not None and predicted.proba.size <= _MOST_PROBABILITIES:
        section["proba"] = rounded(predicted.proba)
    return section


def _labels(rows: ModelRows, codes: Any) -> list[str]:
    return [rows.classes[code] for code in codes.tolist()]


def _left_out(rows: ModelRows) -> Iterator[str]:
    """Yield the reasons why sections are left out."""
    model = rows.model
    if rows.classes:
        if rows.predicted.proba is None:
            yield "Curves and calibration are left out: the model has no class probabilities."
        elif len(np.unique(rows.truth)) == 1:
            yield "ROC and precision-recall curves are left out: all rows are of one class."
    if model.engine is None:
        yield "Trees are left out: the model is an ensemble of other models."
        if not model.history.get("runs"):
            yield "Learning curves are left out: the model has no rounds."
    elif not model.is_whole:
        yield "Scores by round are left out: predictions are not those of the trees alone."
    is_forest = model.engine is not None and model.engine.combine == "mean"
    draws = is_forest and getattr(model.model, "bootstrap", False) is True
    if draws and "out_of_bag" not in model.history:
        yield "The out-of-bag curve is left out: it needs a fit with oob_score=True."
