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
``rows``          the sampled rows of all explorers: ``index`` in the given table, ``truth``,
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
                  rows), bins or levels; ``outputs``, their names
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

from arboost.backend import core
from arboost.report.hashing import sample_rows
from arboost.report.inputs import ReportInput
from arboost.report.sections.about import about_section, model_kind, model_name
from arboost.report.sections.classification import (
    binary_section,
    classes_section,
    confusion_section,
    multiclass_section,
)
from arboost.report.sections.data import data_section
from arboost.report.sections.dependence import dependence_section
from arboost.report.sections.flips import flips_section
from arboost.report.sections.importances import (
    Effects,
    effects_of,
    importances_section,
    shap_rows,
    shap_section,
)
from arboost.report.sections.learning import forest_section, learning_section, theory_section
from arboost.report.sections.regression import regression_section
from arboost.report.sections.rows import predictions_section, rows_section
from arboost.report.sections.scores import (
    baseline,
    comparison,
    score_rows,
    scores_section,
)
from arboost.report.sections.segments import segments_section
from arboost.report.sections.trees import trees_section
from arboost.report.table import Sample

__all__ = ["FORMAT", "make_payload"]

FORMAT = 1
_MOST_ROWS = 400  # in the explorers

R = TypeVar("R")


class _Clock:
    """Seconds of each section."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[..., R], *args: Any) -> R:
        """Return the result of a call, and add its seconds to a section."""
        start = time.perf_counter()
        found = work(*args)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return found


def make_payload(inputs: ReportInput) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the payload of a report, and the seconds that each section took.

    Equal inputs give equal payloads: nothing in them depends on a clock or on threads.
    """
    # Sums and differences of the largest doubles overflow: the page shows no number there.
    with np.errstate(over="ignore", invalid="ignore"):
        return _payload(inputs, _Clock())


def _payload(inputs: ReportInput, clock: _Clock) -> tuple[dict[str, Any], dict[str, float]]:
    places = range(len(inputs.models))
    fewest = min(len(shap_rows(inputs, place)) for place in places)
    rows = sample_rows(inputs.n_rows, min(_MOST_ROWS, fewest))
    effects = [clock.run("importances", effects_of, inputs, place) for place in places]
    samples = [clock.run("rows", table.sample, rows) for table in inputs.tables]
    base, base_text = baseline(inputs)
    plain = clock.run("scores", lambda: score_rows(inputs, base, has_replicates=False))
    scores = [
        clock.run("scores", score_rows, inputs, predicted, place)
        for place, predicted in enumerate(inputs.predicted)
    ]
    names = _names(inputs)
    models = []
    for place in places:
        model = _model(inputs, place, samples[place], effects[place], clock)
        model |= {
            "name": names[place],
            "scores": scores_section(inputs, scores[place], plain),
            "baseline_text": base_text,
        }
        models.append(model)
    payload = {
        "format": FORMAT,
        "title": inputs.title,
        "arboost": core.version(),
        "task": inputs.task,
        "target": inputs.target,
        "classes": None
        if inputs.classes is None
        else [str(label) for label in inputs.classes.tolist()],
        "data": clock.run("data", data_section, inputs, effects[0].order.tolist()),
        "rows": clock.run("rows", rows_section, inputs, samples[0], effects[0]),
        "models": models,
        "comparison": comparison(inputs, scores, names) if len(models) > 1 else None,
    }
    return payload, clock.seconds


def _names(inputs: ReportInput) -> list[str]:
    names = [model_name(model) for model in inputs.models]
    if len(set(names)) < len(names):
        names = [f"{name} {letter}" for name, letter in zip(names, "AB", strict=False)]
    return names


def _model(
    inputs: ReportInput, place: int, sample: Sample, effects: Effects, clock: _Clock
) -> dict[str, Any]:
    """Return the sections of one model."""
    model, predicted = inputs.models[place], inputs.predicted[place]
    dependence, outputs = clock.run("dependence", dependence_section, inputs, place, effects)
    flips, rule = clock.run("flips", flips_section, inputs, place, sample, effects)
    return {
        "kind": model_kind(model),
        **clock.run("about", about_section, inputs, place),
        "learning": clock.run("learning", learning_section, inputs, place),
        "binary": clock.run("curves", binary_section, inputs, predicted),
        "confusion": clock.run("curves", confusion_section, inputs, predicted),
        "classes": clock.run("curves", classes_section, inputs, predicted),
        "multiclass": clock.run("curves", multiclass_section, inputs, predicted),
        "regression": clock.run("curves", regression_section, inputs, place),
        "segments": clock.run("segments", segments_section, inputs, place, effects),
        "importances": importances_section(inputs, place, effects),
        "shap": clock.run("shap", shap_section, inputs, place, sample, effects),
        "dependence": dependence,
        "outputs": outputs,
        "predictions": predictions_section(inputs, place, sample),
        "flips": flips,
        "flip_rule": rule,
        "trees": clock.run("trees", trees_section, model, sample, len(inputs.models)),
        "theory": clock.run("learning", theory_section, inputs, place),
        "forest": clock.run("learning", forest_section, inputs, place),
        "notes": [*effects.notes, *_left_out(inputs, place)],
    }


def _left_out(inputs: ReportInput, place: int) -> Iterator[str]:
    """Yield the reasons why sections are left out."""
    model, predicted = inputs.models[place], inputs.predicted[place]
    if inputs.classes is not None:
        if predicted.proba is None:
            yield "Curves and calibration are left out: the model has no class probabilities."
        elif len(np.unique(inputs.truth)) == 1:
            yield "ROC and precision-recall curves are left out: all rows are of one class."
    if model.engine is None:
        yield "Trees are left out: the model is an ensemble of other models."
        if not model.history.get("runs"):
            yield "Learning curves are left out: the model has no rounds."
    elif not model.is_whole:
        yield "Scores by round are left out: predictions are not those of the trees alone."
    draws = model.combine == "mean" and getattr(model.model, "bootstrap", False) is True
    if draws and "out_of_bag" not in model.history:
        yield "The out-of-bag curve is left out: it needs a fit with oob_score=True."
