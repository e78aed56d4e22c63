"""The sampled rows that the explorers of a page show: their values and predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from arboost.backend import core
from arboost.losses.intervals import sample_rows
from arboost.report.data import data_section
from arboost.report.effects import (
    Effects,
    dependence_section,
    effects_of,
    importances_section,
    shap_rows,
    shap_section,
)
from arboost.report.flips import flips_section
from arboost.report.inputs import ReportInput
from arboost.report.model_sections import (
    about_section,
    forest_section,
    learning_section,
    model_kind,
    model_name,
    theory_section,
    trees_section,
)
from arboost.report.performance import (
    binary_section,
    classes_section,
    confusion_section,
    multiclass_section,
    regression_section,
    segments_section,
)
from arboost.report.scores import baseline, comparison, score_rows, scores_section
from arboost.report.table import MORE_DIGITS, Sample, rounded

MOST_FEATURES = 200
_MOST_PROBABILITIES = 30_000  # of all rows and classes


def rows_section(inputs: ReportInput, sample: Sample, effects: Effects) -> dict[str, Any]:
    """Return the values of the sampled rows; of many features the important ones."""
    features = np.arange(len(sample.columns))
    if len(features) > MOST_FEATURES:
        features = np.sort(effects.order[:MOST_FEATURES])
    columns = [sample.columns[feature] for feature in features.tolist()]
    truth = inputs.truth[sample.rows]
    shown: list[Any] = rounded(truth, MORE_DIGITS)
    if inputs.classes is not None:
        shown = [str(label) for label in inputs.classes[truth].tolist()]
    return {
        "index": inputs.rows[sample.rows].tolist(),
        "truth": shown,
        "columns": {column.name: column.shown() for column in columns},
        "n_features": len(sample.columns),
    }


def predictions_section(inputs: ReportInput, place: int, sample: Sample) -> dict[str, Any]:
    """Return the predictions of the sampled rows."""
    predicted = inputs.predicted[place].take(sample.rows)
    truth = inputs.truth[sample.rows]
    if predicted.values is not None:
        return {
            "label": rounded(predicted.values, MORE_DIGITS),
            "proba": None,
            "value": rounded(predicted.values, MORE_DIGITS),
            "correct": None,
            "error": rounded(predicted.values - truth),
        }
    assert predicted.codes is not None
    assert inputs.classes is not None
    proba = predicted.proba
    if proba is not None and proba.size > _MOST_PROBABILITIES:
        proba = None  # the label is enough for many classes
    return {
        "label": [str(label) for label in inputs.classes[predicted.codes].tolist()],
        "proba": None if proba is None else rounded(proba),
        "value": None,
        "correct": (predicted.codes == truth).tolist(),
        "error": None,
    }


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
