"""Comparison: scores and times of several models on the same folds, as a table."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.text import counted

Floats = NDArray[np.float64]

_HEADER = ("± se", "to best", "± se", "fit s", "predict s")
_MOST_DECIMALS = 5
_TIE_ERRORS = 2.0  # models whose mean paired difference is below this many standard errors tie


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelScores:
    """Scores and times of one model.

    Attributes
    ----------
    name : str
    scores : float64 array of shape (n_folds,)
        Metric on the held-out rows of each fold; NaN where the fit failed.
    fit_seconds, predict_seconds : float64 array of shape (n_folds,)
        Times of the fit, without the shared binning, and of the predictions for the held-out rows.
    failures : mapping of int to str
        Reason by fold, for the fits that failed.
    difference, difference_error : float
        Mean over the folds of the difference to the best model, and its standard error; 0 for the
        best model, NaN where a fold failed.
    is_tied : bool
        Whether the difference is less than two standard errors, or this is the best model.
    """

    name: str
    scores: Floats
    fit_seconds: Floats
    predict_seconds: Floats
    failures: Mapping[int, str]
    difference: float = math.nan
    difference_error: float = math.nan
    is_tied: bool = False

    @property
    def mean(self) -> float:
        """Mean score over the folds; NaN where a fold failed."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the folds; NaN for one fold."""
        return standard_error(self.scores)

    @property
    def mean_fit_seconds(self) -> float:
        """Mean time of a fit; NaN where all failed."""
        return _mean(self.fit_seconds)

    @property
    def mean_predict_seconds(self) -> float:
        """Mean time of the predictions for the held-out rows of a fold; NaN where all failed."""
        return _mean(self.predict_seconds)

    def to_dict(self) -> dict[str, Any]:
        """Numbers as lists and floats, None for those that are not known."""
        return {
            "mean": _json_number(self.mean),
            "standard_error": _json_number(self.standard_error),
            "scores": [_json_number(value) for value in self.scores.tolist()],
            "difference": _json_number(self.difference),
            "difference_error": _json_number(self.difference_error),
            "is_tied": self.is_tied,
            "fit_seconds": [_json_number(value) for value in self.fit_seconds.tolist()],
            "predict_seconds": [_json_number(value) for value in self.predict_seconds.tolist()],
            "failures": {str(fold): reason for fold, reason in self.failures.items()},
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Result of `compare`, the best model first.

    ``print`` shows a table, and so does a notebook. A ``*`` marks models whose mean difference to
    the best one, fold by fold, is less than two standard errors: a tie.

    Attributes
    ----------
    models : tuple of ModelScores
        Scores, times and failures of each model, the best one first, failed ones last.
    metric : str
    greater_is_better : bool
    task : {"classification", "regression"}
    n_rows, n_folds : int
    binning_seconds : float
        Time of the binning that all fits share, not included in their times. Models that bin their
        own rows, such as a stack, do so within their fit time.
    estimators : mapping of str to estimator
        The models, unfitted, by name.
    """

    models: tuple[ModelScores, ...]
    metric: str
    greater_is_better: bool
    task: str
    n_rows: int
    n_folds: int
    binning_seconds: float
    estimators: Mapping[str, Any]

    @property
    def best(self) -> str:
        """Name of the best model; ``estimators[best]`` is the model itself."""
        return self.models[0].name

    @property
    def scores(self) -> dict[str, Floats]:
        """Scores of each fold by model."""
        return {model.name: model.scores for model in self.models}

    @property
    def means(self) -> dict[str, float]:
        """Mean score by model."""
        return {model.name: model.mean for model in self.models}

    def __getitem__(self, name: str) -> ModelScores:
        """Scores of a model."""
        for model in self.models:
            if model.name == name:
                return model
        names = ", ".join(model.name for model in self.models)
        raise KeyError(f"{name!r} was not compared. There are {names}.")

    def to_dict(self) -> dict[str, Any]:
        """Comparison as dicts, lists and numbers, ready for JSON."""
        return {
            "task": self.task,
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "n_rows": self.n_rows,
            "n_folds": self.n_folds,
            "binning_seconds": self.binning_seconds,
            "best": self.best,
            "models": {model.name: model.to_dict() for model in self.models},
        }

    def header(self) -> tuple[str, ...]:
        """Column names of `table`."""
        return ("model", self.metric, *_HEADER)

    def table(self) -> list[tuple[str, ...]]:
        """Cells of the printed table, a row for each model."""
        best = self.models[0]
        decimals = _decimals(best)
        return [_cells(model, decimals, is_best=model is best) for model in self.models]

    def notes(self) -> list[str]:
        """Lines below the table: ties, the shared binning, failures."""
        lines = []
        if sum(model.is_tied for model in self.models) > 1:
            lines.append("* tied with the best model (difference below 2 standard errors)")
        if self.binning_seconds:
            seconds = _seconds_text(self.binning_seconds)
            lines.append(f"Binning, shared by all fits and not included above: {seconds} s.")
        for model in self.models:
            reasons = dict.fromkeys(model.failures.values())
            count = counted(len(model.failures), "fold")
            lines += [f"{model.name} failed in {count}: {text}" for text in reasons]
        return lines

    def title(self) -> str:
        """Line above the table."""
        better = "greater" if self.greater_is_better else "smaller"
        return (
            f"{self.task}, {self.n_rows} rows, {self.n_folds} folds; {self.metric}: "
            f"{better} is better"
        )

    def __repr__(self) -> str:
        rows = [self.header(), *self.table()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [self.title()]
        for first, *rest in rows:
            padded = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
            lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
        return "\n".join([*lines, *self.notes()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.header())
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.table()
        )
        notes = "<br>".join(html.escape(line) for line in self.notes())
        return (
            f"<table><caption>{html.escape(self.title())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{notes}</p>"
        )


def standard_error(values: Floats) -> float:
    """Standard error of the mean; NaN for one value."""
    if len(values) == 1:
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def rank_models(
    models: Sequence[ModelScores], *, greater_is_better: bool
) -> tuple[ModelScores, ...]:
    """Models, the best one first and failed ones last, with differences to the best."""
    sign = -1.0 if greater_is_better else 1.0
    order = sorted(models, key=lambda model: (math.isnan(model.mean), sign * model.mean))
    best = order[0]
    return tuple(_with_difference(model, best) for model in order)


def _with_difference(model: ModelScores, best: ModelScores) -> ModelScores:
    if math.isnan(model.mean):
        return model
    paired = model.scores - best.scores
    error = standard_error(paired)
    mean = float(paired.mean())
    is_tied = model is best or abs(mean) <= _TIE_ERRORS * error
    return replace(model, difference=mean, difference_error=error, is_tied=is_tied)


def _seconds_text(seconds: float) -> str:
    """Seconds with three significant digits, at least milliseconds."""
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.3g}"


def _decimals(best: ModelScores) -> int:
    """The decimals of scores: two digits of the standard error of the best model."""
    error = best.standard_error
    if math.isnan(error) or error <= 0.0:
        error = abs(best.mean) * 1e-3
    if not math.isfinite(error) or error <= 0.0:
        return _MOST_DECIMALS
    return min(max(1 - math.floor(math.log10(error)), 0), _MOST_DECIMALS)


def _cells(model: ModelScores, decimals: int, *, is_best: bool) -> tuple[str, ...]:
    def number(value: float, sign: str = "") -> str:
        return "-" if math.isnan(value) else f"{value:{sign}.{decimals}f}"

    return (
        model.name if is_best or not model.is_tied else f"{model.name} *",
        number(model.mean),
        number(model.standard_error),
        "" if is_best else number(model.difference, "+"),
        "" if is_best else number(model.difference_error),
        _seconds_text(model.mean_fit_seconds),
        _seconds_text(model.mean_predict_seconds),
    )


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _json_number(value: float) -> float | None:
    return None if math.isnan(value) else value
