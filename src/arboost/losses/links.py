"""Raw scores -> predictions: the links, and the classes and targets that scores stand for.

A link takes float64 scores of shape (n_rows, n_outputs):

================== ============ =====================================================
link               n_outputs    prediction
================== ============ =====================================================
identity           any          the scores themselves
exp                any          e^score, constant from a score of 709.78, where doubles end
ordered            n_quantiles  the scores of each row, sorted: quantiles never cross
logistic           1            (n_rows, 2) probabilities of the two classes
logistic_of_double 1            the same for twice the score: exponential loss
softmax            n_classes    (n_rows, n_classes) probabilities
share_of_two       1            (n_rows, 2) probabilities whose difference is the score
shares             n_classes    (n_rows, n_classes) probabilities: the scores themselves
================== ============ =====================================================

Finite scores have finite predictions. The core computes them: the same bytes on every machine, and
for a row alone as among others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.feature_names import offset_names, offset_values, split_offset
from arboost.data.schema import Schema
from arboost.data.target import check_pairing
from arboost.errors import InputTypeError, ParameterError

Scores: TypeAlias = NDArray[np.float64]
Link: TypeAlias = Callable[[Scores], Scores]
Labels: TypeAlias = NDArray[Any]
Probabilities: TypeAlias = Scores | list[Scores]  # a list for several targets

# Links that give probabilities: with one output for each class, or one for two classes.
ALL_CLASS_LINKS = ("softmax", "shares")
SHARE_LINKS = ("share_of_two", "shares")  # linear: scores of trees and forests are probabilities
CLASS_LINKS = ("logistic", "logistic_of_double", "share_of_two", *ALL_CLASS_LINKS)

# The logarithm of the largest double, rounded down.
LARGEST_EXPONENT = 709.782712893384

_SUM_ROUNDING = 1e-6  # of probabilities that a user writes down


# ---- links and the raw scores of a base score ----


def _core_link(name: str, width: int | None = None) -> Link:
    """Link of the core with `width` predictions per row, by default one per score."""

    def apply(raw: Scores) -> Scores:
        out = np.empty((len(raw), raw.shape[1] if width is None else width))
        core.link(name, np.ascontiguousarray(raw, np.float64), out)
        return out

    return apply


LINKS: Mapping[str, Link] = {
    "identity": lambda raw: raw,
    "exp": _core_link("exp"),
    # Sorting never increases the mean pinball loss (Chernozhukov, Fernandez-Val, Galichon 2010).
    "ordered": lambda raw: np.sort(raw, axis=1),
    "logistic": _core_link("logistic", 2),
    "logistic_of_double": _core_link("logistic_of_double", 2),
    "softmax": _core_link("softmax"),
    "share_of_two": _core_link("share_of_two", 2),
    "shares": _core_link("shares"),
}


def base_scores(link: str, value: float | Sequence[float], n_outputs: int) -> Scores:
    """Raw scores whose prediction is ``value``, a user's ``base_score``.

    With two classes the value is the probability of the second; with more, the probabilities of
    all, or 0 for scores of 0.

    Examples
    --------
    >>> base_scores("exp", 1.0, 1).tolist()
    [0.0]
    >>> base_scores("softmax", 0.0, 3).tolist()
    [0.0, 0.0, 0.0]
    """
    if link in ("softmax", "shares"):
        return _class_scores(value, n_outputs)
    values = value if isinstance(value, Sequence) else [value] * n_outputs
    if len(values) != n_outputs:
        raise ParameterError(
            f"base_score={value!r} is not allowed: it has {len(values)} numbers, and the model "
            f"has {n_outputs} raw {'score' if n_outputs == 1 else 'scores'}. Use one number, or "
            "base_score=None to take it from the data.",
            parameter="base_score",
        )
    return np.array([_base_score(link, number) for number in values])


def _class_scores(value: float | Sequence[float], n_classes: int) -> Scores:
    """Logarithms of the probabilities of three or more classes."""
    if not isinstance(value, Sequence) and value == 0.0:
        return np.zeros(n_classes)
    probabilities = np.array(value)
    if probabilities.shape != (n_classes,) or not (
        (probabilities > 0.0).all() and abs(probabilities.sum() - 1.0) <= _SUM_ROUNDING
    ):
        raise ParameterError(
            f"base_score={value!r} is not allowed: with {n_classes} classes it is a list of their "
            f"{n_classes} probabilities, each above 0 and together 1, or 0 for raw scores of 0. "
            "Use base_score=None to take it from the data.",
            parameter="base_score",
        )
    return core.log(probabilities)


def _base_score(link: str, value: float) -> float:
    """Raw score whose prediction is a number."""
    if link in ("identity", "ordered"):
        return value
    if link == "exp":
        if not 0.0 < value < math.inf:
            raise ParameterError(
                f"base_score={value!r} is not allowed: with this loss it is a mean, above 0. Use "
                "base_score=None to take it from the data.",
                parameter="base_score",
            )
        return core.log(value)
    if not 0.0 < value < 1.0:
        raise ParameterError(
            f"base_score={value!r} is not allowed: with two classes it is the probability of the "
            "second, above 0 and below 1. Use base_score=None to take it from the data.",
            parameter="base_score",
        )
    if link == "share_of_two":
        return 2 * value - 1
    log_odds = core.log(value) - core.log1p(-value)
    return log_odds / 2 if link == "logistic_of_double" else log_odds


# ---- outputs of a model: classes and targets ----


class OutputSpec(Protocol):
    """The properties of a model that turn raw scores into predictions."""

    @property
    def kind(self) -> str:
        """Either "regressor" or "classifier"."""

    @property
    def link(self) -> str:
        """Name of the link in `arboost.losses.links`."""

    @property
    def classes(self) -> Any:
        """Class labels, a tuple of arrays for several targets; None for regression."""

    @property
    def n_outputs(self) -> int:
        """Number of raw scores of a row."""

    @property
    def targets(self) -> tuple[int, ...]:
        """Number of outputs of each target; empty for a single target."""


class ScoredModel(OutputSpec, Protocol):
    """A model whose raw scores may have an offset."""

    @property
    def schema(self) -> Schema:
        """Columns of the fit."""


def target_link(n_outputs: int, n_classes: int) -> str:
    """Link of one target of a classifier that has several."""
    two_in_one = (n_outputs, n_classes) == (1, 2)
    return "share_of_two" if two_in_one else "shares"


class TargetPart(NamedTuple):
    """One target of a classifier: its link, its labels and its raw-score columns."""

    link: str
    labels: Labels
    first: int  # index of its first raw-score column
    n_outputs: int

    def columns(self, raw: Scores) -> Scores:
        """Raw scores of the target."""
        return raw[:, self.first : self.first + self.n_outputs]


def target_parts(model: OutputSpec) -> list[TargetPart]:
    """Targets of a classifier in the order of their outputs; there may be only one."""
    if not model.targets:
        return [TargetPart(model.link, model.classes, 0, model.n_outputs)]
    starts = (sum(model.targets[:target]) for target in range(len(model.targets)))
    return [
        TargetPart(target_link(n_outputs, len(labels)), labels, first, n_outputs)
        for n_outputs, labels, first in zip(model.targets, model.classes, starts, strict=True)
    ]


def is_probability_difference(model: OutputSpec) -> NDArray[np.bool_]:
    """Whether raw scores are the probability of the second class minus that of the first."""
    if model.classes is None:
        return np.zeros(model.n_outputs, np.bool_)
    parts = target_parts(model)
    return np.repeat(
        [part.link == "share_of_two" for part in parts], [part.n_outputs for part in parts]
    )


# ---- predictions ----


def predictions(model: OutputSpec, raw: Scores) -> NDArray[Any]:
    """Predicted values (regression) or the most likely labels of raw scores.

    Their shape is (n_rows,), or (n_rows, n_targets) for several targets.
    """
    if model.classes is None:
        values = LINKS[model.link](raw)
        return values[:, 0] if model.n_outputs == 1 else values
    labels = [_most_likely(part, part.columns(raw)) for part in target_parts(model)]
    return stack_labels(labels) if model.targets else labels[0]


def _most_likely(part: TargetPart, raw: Scores) -> Labels:
    # Links are monotone, so the most likely class needs no exp.
    by_output = part.link in ALL_CLASS_LINKS
    codes = raw.argmax(axis=1) if by_output else (raw[:, 0] > 0).astype(np.intp)
    labels: Labels = part.labels[codes]
    return labels


def stack_labels(columns: Sequence[Labels]) -> Labels:
    """Labels of several targets as columns; labels of different kinds are objects."""
    kinds = {column.dtype.kind for column in columns}  # NumPy would make them strings
    return np.stack(columns if len(kinds) == 1 else [c.astype(object) for c in columns], axis=1)


def probabilities(model: OutputSpec, raw: Scores) -> Probabilities:
    """Class probabilities of raw scores, shape (n_rows, n_classes).

    For several targets the result is a list of such arrays.
    """
    check_classifier(model)
    by_target = [LINKS[part.link](part.columns(raw)) for part in target_parts(model)]
    return by_target if model.targets else by_target[0]


def decision(raw: Scores) -> Scores:
    """Raw scores as `decision_function` gives them: a vector where there is one output."""
    return raw.ravel() if raw.shape[1] == 1 else raw


def check_classifier(model: OutputSpec) -> None:
    """Raise TypeError unless a model has class probabilities."""
    if model.kind != "classifier":
        raise InputTypeError(
            f"predict_proba is not available for a {model.kind}: only a classifier has "
            "probabilities. Use predict."
        )


# ---- offsets ----


def check_offset(
    offset: Scores | None, n_outputs: int, link: str, argument: str = "offset"
) -> None:
    """Raise ValueError unless an offset, if any, can be added to raw scores of a row."""
    if offset is None:
        return
    width = offset.shape[1]
    if width not in (1, n_outputs):
        raise ValueError(
            f"{argument} has {width} values a row, but there are {n_outputs} raw scores a row. "
            f"Pass an array of shape (n_rows, {n_outputs})."
        )
    if width < n_outputs and link == "softmax" and offset.any():
        raise ValueError(
            f"{argument} has one value a row, which would shift the raw scores of all {n_outputs} "
            f"classes alike and change no probability. Pass an array of shape (n_rows, "
            f"{n_outputs}), or the names of {n_outputs} columns."
        )


def read_offset(model: ScoredModel, X: object, n_rows: int, offset: object) -> Scores | None:
    """Offset of the rows of X; None for a model that was fitted without one.

    Parameters
    ----------
    model : ScoredModel
    X : table
        It may have the columns of the offset.
    n_rows : int
    offset : object
        As `predict` takes it; None for the columns that the fit named.
    """
    if model.schema.offset is None:
        if offset is not None:
            raise ValueError(
                "offset was passed, but the model was fitted without an offset. Leave it out; "
                "predict_raw returns scores that numbers can be added to."
            )
        return None
    if offset is None and not model.schema.offset:
        raise ValueError(
            "offset is None, but the model was fitted with an array of offsets, which are part of "
            "its raw scores. Pass the offset of these rows, or offset=0 for predictions without it."
        )
    chosen = list(model.schema.offset) if offset is None else offset
    check_pairing(X, None, offset=chosen)
    _, values = split_offset(X, chosen)
    array = offset_values(values, n_rows, offset_names(chosen) or ())
    check_offset(array, model.n_outputs, model.link)
    return array


# ---- validation of a model from a file ----


def require(condition: object, problem: str) -> None:
    """Raise ValueError for an inconsistent model unless the condition holds."""
    if not condition:
        raise ValueError(f"inconsistent model: {problem}")


def validate_names(schema: Schema) -> None:
    """Raise ValueError unless the names of a schema are one for each feature, or None."""
    names = schema.names
    if names is not None:
        require(len(names) == schema.n_features, f"{len(names)} feature names")
        require(len(set(names)) == len(names), "two features of one name")


def validate_outputs(model: OutputSpec) -> None:
    """Raise ValueError unless kind, link, classes, targets and outputs fit together."""
    require(model.link in LINKS, f"the link {model.link!r}")
    require(model.kind in ("regressor", "classifier", "ranker"), f"the kind {model.kind!r}")
    require((model.kind == "classifier") == (model.classes is not None), "classes and kind")
    require((model.kind == "classifier") == (model.link in CLASS_LINKS), "link and kind")
    if model.targets:
        _validate_targets(model)
    elif model.classes is not None:
        require(not isinstance(model.classes, tuple), "classes of several targets")
        columns = model.n_outputs if model.link in ALL_CLASS_LINKS else 2
        _validate_labels(model.classes, columns)
        require(model.link in ALL_CLASS_LINKS or model.n_outputs == 1, "link and outputs")


def _validate_targets(model: OutputSpec) -> None:
    targets, classes = model.targets, model.classes
    require(len(targets) > 1, "a single target among several")
    require(min(targets) >= 1, "a target without outputs")
    require(sum(targets) == model.n_outputs, f"targets of {sum(targets)} outputs")
    if classes is None:
        require(model.link == "identity", f"several targets with the link {model.link!r}")
        require(max(targets) == 1, "several outputs for one number")
        return
    require(model.link == "shares", f"several targets with the link {model.link!r}")
    require(isinstance(classes, tuple), "classes of a single target")
    require(len(classes) == len(targets), f"classes of {len(classes)} targets")
    for outputs, labels in zip(targets, classes, strict=True):
        two_in_one = target_link(outputs, len(labels)) == "share_of_two"
        _validate_labels(labels, 2 if two_in_one else outputs)


def _validate_labels(labels: Labels, n_classes: int) -> None:
    require(labels.shape == (n_classes,), f"{len(labels)} classes")
