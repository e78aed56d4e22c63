"""Ensembles of models: outputs of the members, placed and added, and a final model over them.

    X ─┬─▶ member 0 ─▶ outputs ─┐
       ├─▶ member 1 ─▶ outputs ─┼─▶ columns ─▶ (final model) ─▶ prediction
       └─▶ ...                  ┘

Bagging and voting add the outputs of their members to the same columns, times their weights; stacks
give each member columns of its own, which a final model reads: trees, or a linear function.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.raw_columns import RawTable
from arboost.data.schema import Schema
from arboost.data.table import apply_raw, read_raw
from arboost.model.links import LINKS
from arboost.model.metadata import check_metadata
from arboost.model.model import Model
from arboost.model.outputs import Labels, require, validate_names
from arboost.model.predict import predictions, probabilities, table_scores

__all__ = ["OUTPUTS", "Ensemble", "EnsembleMember", "LinearModel"]

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

# Outputs of a member: class probabilities; one-hot predicted classes, whose means are those of
# predict_proba or not; predicted values.
OUTPUTS = ("probabilities", "vote_shares", "votes", "values")
_LINEAR_LINKS = ("identity", "logistic", "softmax")
_TWO_CLASSES = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class EnsembleMember:
    """One member of an ensemble.

    Attributes
    ----------
    name : str
    model : Model
    features : int64 array
        Features of the table that the member reads, in its order.
    output : str
        One of `OUTPUTS`.
    taken, places : int64 arrays of equal length
        Columns of the output, and the columns of the ensemble that they are added to.
    weight : float
    """

    name: str
    model: Model
    features: Index
    output: str
    taken: Index
    places: Index
    weight: float = 1.0

    @property
    def n_columns(self) -> int:
        """Number of columns of the output."""
        classes = self.model.classes
        return self.model.n_outputs if classes is None else len(classes)

    def outputs(self, raw: RawTable, n_threads: int) -> Floats:
        """Return the outputs of the rows, shape (n_rows, n_columns)."""
        table = apply_raw(raw.select(self.features.tolist()), self.model.schema)
        scores = table_scores(self.model, table, n_threads=n_threads)
        if self.output == "values":
            return predictions(self.model, scores).reshape(len(scores), -1)
        shares = probabilities(self.model, scores)
        assert not isinstance(shares, list)  # members have one target
        if self.output == "probabilities":
            return shares
        chosen = predictions(self.model, scores)
        votes: Floats = (chosen[:, np.newaxis] == self.model.classes).astype(np.float64)
        return votes


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear function of the columns, with a link; the default final model of stacks.

    Attributes
    ----------
    coef : float64 array of shape (n_outputs, n_columns)
    intercept : float64 array of shape (n_outputs,)
    link : {"identity", "logistic", "softmax"}
    """

    coef: Floats
    intercept: Floats
    link: str

    def scores(self, columns: Floats) -> Floats:
        """Return the raw scores of the rows, shape (n_rows, n_outputs)."""
        total = np.zeros((len(columns), len(self.intercept)))
        for column, coef in zip(columns.T, self.coef.T, strict=True):
            # In this order: sums of BLAS depend on which rows are predicted together.
            total += column[:, np.newaxis] * coef
        return total + self.intercept


@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Members, the combination of their outputs, and a final model.

    Attributes
    ----------
    kind : {"regressor", "classifier"}
    schema : Schema
        Names and number of the features; levels are those of the members.
    classes : array of shape (n_classes,), or None for regression
    members : tuple of EnsembleMember
    n_columns : int
        Number of columns that outputs are added to.
    divisor : float
        Divisor of the columns: the sum of the weights for means, 1 for stacks.
    final : Model, LinearModel or None
        None: the columns are the predictions.
    passthrough : bool
        Whether the final model also reads the features, after the columns.
    provenance : dict
        Metadata of the fit, for JSON.
    metadata : dict
        JSON values of the user, by name.
    """

    kind: str
    schema: Schema
    classes: Labels | None
    members: tuple[EnsembleMember, ...]
    n_columns: int
    divisor: float = 1.0
    final: Model | LinearModel | None = None
    passthrough: bool = False
    provenance: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", dict(self.metadata))

    def columns(self, raw: RawTable, n_threads: int) -> Floats:
        """Return the outputs of the members, placed, added in their order, and divided."""
        total = np.zeros((int(raw.columns.n_rows), self.n_columns))
        for member in self.members:
            outputs = member.outputs(raw, n_threads)
            total[:, member.places] += member.weight * outputs[:, member.taken]
        return total / self.divisor

    def predictions(self, X: object, n_threads: int) -> NDArray[Any]:
        """Return the predicted values or labels of the rows of X."""
        raw = read_raw(X, self.schema, "the ensemble")
        values = self._final_scores(raw, n_threads)
        if self.classes is None:
            return values[:, 0] if values.shape[1] == 1 else values
        if isinstance(self.final, Model):
            codes = predictions(self.final, values).astype(np.intp)
        elif self.final is not None and values.shape[1] == 1:
            codes = (values[:, 0] > 0).astype(np.intp)
        else:
            codes = values.argmax(axis=1)
        return self.classes[codes]

    def probabilities(self, X: object, n_threads: int) -> Floats:
        """Return the class probabilities of the rows of X, shape (n_rows, n_classes)."""
        if self.classes is None or any(one.output == "votes" for one in self.members):
            what = "a regressor" if self.classes is None else "a hard vote"
            raise TypeError(f"predict_proba was asked of {what}, which has none. Use predict.")
        raw = read_raw(X, self.schema, "the ensemble")
        values = self._final_scores(raw, n_threads)
        if self.final is None:
            return values
        if isinstance(self.final, LinearModel):
            return LINKS[self.final.link](values)
        shares = np.zeros((len(values), len(self.classes)))
        shares[:, self.final.classes.astype(np.intp)] = probabilities(self.final, values)
        return shares

    def decision_scores(self, X: object, n_threads: int) -> Floats:
        """Return the raw scores of the final model of a stack of classifiers."""
        final = self.final
        has_shares = isinstance(final, Model) and final.link in ("share_of_two", "shares")
        if self.classes is None or final is None or has_shares:
            raise TypeError(
                "decision_function is there for stacks of classifiers whose final estimator has "
                "scores. Use predict, or predict_proba of a classifier."
            )
        return self._final_scores(read_raw(X, self.schema, "the ensemble"), n_threads)

    def _final_scores(self, raw: RawTable, n_threads: int) -> Floats:
        """Return the raw scores of the final model; without one, the columns."""
        columns = self.columns(raw, n_threads)
        if self.final is None:
            return columns
        if isinstance(self.final, LinearModel):
            if self.passthrough:
                n_features = range(self.schema.n_features)
                columns = np.column_stack([columns, *(raw.columns.read(i) for i in n_features)])
            return self.final.scores(columns)
        features = RawTable(core.Columns(len(columns)))
        features.columns.add_matrix(columns)
        if self.passthrough:
            features.extend(raw)
        table = apply_raw(features, self.final.schema)
        scores = table_scores(self.final, table, n_threads=n_threads)
        return LINKS[self.final.link](scores) if self.classes is None else scores

    def with_models(self, made: type[Model]) -> Self:
        """Return the ensemble with all models as instances of a subclass of Model."""
        members = (replace(one, model=made(**one.model.fields())) for one in self.members)
        final = self.final
        if isinstance(final, Model):
            final = made(**final.fields())
        return replace(self, members=tuple(members), final=final)

    def on_device(self, device: str) -> Self:
        """Return the ensemble with all models on a device."""
        members = (replace(one, model=one.model.to(device)) for one in self.members)
        final = self.final
        if isinstance(final, Model):
            final = final.to(device)
        return replace(self, members=tuple(members), final=final)

    def validate(self) -> None:
        """Raise ValueError unless the parts fit together; for an ensemble from a file."""
        require(self.kind in ("regressor", "classifier"), f"the kind {self.kind!r}")
        require((self.kind == "classifier") == (self.classes is not None), "classes and kind")
        require(self.members, "no members")
        check_metadata(self.metadata)
        validate_names(self.schema)
        require(self.n_columns >= 1 and self.divisor > 0, "columns and divisor")
        for member in self.members:
            self._validate_member(member)
        n_final = self.n_columns + self.schema.n_features * self.passthrough
        n_classes = 0 if self.classes is None else len(self.classes)
        if isinstance(self.final, LinearModel):
            n_outputs = len(self.final.intercept)
            require(self.final.coef.shape == (n_outputs, n_final), "shape of coefficients")
            require(self.final.link in _LINEAR_LINKS, f"the link {self.final.link!r}")
            is_class = self.final.link != "identity"
            require(is_class == (self.kind == "classifier"), "link of the final model")
            one = n_classes == _TWO_CLASSES or self.classes is None
            require(n_outputs == (1 if one else n_classes), "outputs of the final model")
        elif self.final is not None:
            require(self.final.schema.n_columns == n_final, "features of the final model")
            require(self.final.schema.offset is None, "a final model with an offset")
            require(self.final.kind == self.kind and not self.final.targets, "final model")
            self._validate_codes(self.final.classes, n_classes)
        elif self.classes is not None:
            require(self.n_columns == n_classes, f"{self.n_columns} columns")
        else:
            filled = set[int]().union(*(one.places.tolist() for one in self.members))
            require(len(filled) == self.n_columns, f"{self.n_columns} columns")

    def _validate_member(self, member: EnsembleMember) -> None:
        model = member.model
        require(model.schema.offset is None, "a member with an offset")
        require(member.output in OUTPUTS, f"the output {member.output!r}")
        require((member.output == "values") == (model.classes is None), "output of a member")
        require(model.classes is None or not model.targets, "classes of several targets")
        require(len(member.features) == model.schema.n_columns, "features of a member")
        require(len(member.taken) == len(member.places), "columns of a member")
        require(len(set(member.places.tolist())) == len(member.places), "columns given twice")
        for index, end in (
            (member.features, self.schema.n_features),
            (member.taken, member.n_columns),
            (member.places, self.n_columns),
        ):
            require(((index >= 0) & (index < end)).all(), "an index out of range")

    @staticmethod
    def _validate_codes(codes: Any, n_classes: int) -> None:
        if codes is not None:
            is_code = codes.dtype.kind in "iu" and ((codes >= 0) & (codes < n_classes)).all()
            require(is_code, "classes of the final model")
