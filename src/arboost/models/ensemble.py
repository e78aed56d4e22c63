"""`EnsemblePredictor`: a fitted ensemble of models, its arithmetic, SHAP values and file.

    X ─┬─▶ member 0 ─▶ outputs ─┐
       ├─▶ member 1 ─▶ outputs ─┼─▶ columns ─▶ (final model) ─▶ prediction
       └─▶ ...                  ┘

Bagging and voting add the outputs of their members to the same columns, times their weights; stacks
give each member columns of its own, which a final model reads: trees, or a linear function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads, core
from arboost.data.raw_table import RawTable
from arboost.data.schema import Schema
from arboost.data.table import Table, apply_raw, read_raw
from arboost.errors import InputTypeError
from arboost.losses import links
from arboost.losses.links import require
from arboost.models import prediction, shap
from arboost.models.files import model_file
from arboost.models.files.container import Budget, naming_errors, pack, typed_fields, unpack
from arboost.models.metadata import check_metadata
from arboost.models.methods import EstimatorMethods
from arboost.models.model import Model
from arboost.text import counted
from arboost.trees.forest import Floats, Integers
from arboost.write import remove_orphans, write_file

# Outputs of a member: class probabilities; one-hot predicted classes, whose means are those of
# predict_proba or not; predicted values.
OUTPUTS = ("probabilities", "vote_shares", "votes", "values")
_LINEAR_MODEL_LINKS = ("identity", "logistic", "softmax")
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
    features: Integers
    output: str
    taken: Integers
    places: Integers
    weight: float = 1.0

    @property
    def n_columns(self) -> int:
        """Number of columns of the output."""
        classes = self.model.classes
        return self.model.n_outputs if classes is None else len(classes)

    def table(self, raw: RawTable) -> Table:
        """Table of the member's features from one of the ensemble's."""
        return apply_raw(raw.select(self.features.tolist()), self.model.schema)

    def outputs(self, raw: RawTable, n_threads: int) -> Floats:
        """Outputs of the rows, shape (n_rows, n_columns)."""
        scores = prediction.table_scores(self.model, self.table(raw), n_threads=n_threads)
        if self.output == "values":
            return links.predictions(self.model, scores).reshape(len(scores), -1)
        shares = links.probabilities(self.model, scores)
        assert not isinstance(shares, list)  # members have one target
        if self.output == "probabilities":
            return shares
        chosen = links.predictions(self.model, scores)
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
        """Raw scores of the rows, shape (n_rows, n_outputs)."""
        total = np.zeros((len(columns), len(self.intercept)))
        for column, coef in zip(columns.T, self.coef.T, strict=True):
            # In this order: sums of BLAS depend on which rows are predicted together.
            total += column[:, np.newaxis] * coef
        return total + self.intercept


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EnsemblePredictor(EstimatorMethods):
    """A fitted ensemble of arboost's own models: the result of `load` for its file.

    Columns are matched by name as in ``fit``. `n_jobs` is the number of threads (None for all that
    this process may use); predictions do not depend on it.

    Attributes
    ----------
    kind : {"regressor", "classifier"}
    schema : Schema
        Names and number of the features; levels are those of the members.
    classes : array of shape (n_classes,), or None for regression
        Class labels, sorted.
    ensemble_members : tuple of EnsembleMember
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
    classes: links.Labels | None
    ensemble_members: tuple[EnsembleMember, ...]
    n_columns: int
    divisor: float = 1.0
    final: Model | LinearModel | None = None
    passthrough: bool = False
    provenance: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", dict(self.metadata))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; x0, x1 and so on where the table had none."""
        return self.schema.shown_names

    @property
    def members(self) -> dict[str, Any]:
        """Predictors of the members by name."""
        return {member.name: member.model for member in self.ensemble_members}

    def with_provenance(self, entries: Mapping[str, Any]) -> Self:
        """Ensemble with more metadata of the fit, which files keep as JSON."""
        return replace(self, provenance={**self.provenance, **entries})

    def to(self, device: str) -> Self:
        """Ensemble with the trees of all members on another device.

        As `arboost.Predictor.to`, but for tables of the host only.
        """
        return self.map_models(lambda model: model.to(device))

    def map_models(self, convert: Callable[[Model], Model]) -> Self:
        """Ensemble with all models converted."""
        members = (replace(m, model=convert(m.model)) for m in self.ensemble_members)
        final = convert(self.final) if isinstance(self.final, Model) else self.final
        return replace(self, ensemble_members=tuple(members), final=final)

    # ---- predictions ----

    def predict(self, X: object, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Predicted values or class labels of the rows of X."""
        values = self._final_scores(X, n_jobs)
        if self.classes is None:
            return values[:, 0] if values.shape[1] == 1 else values
        if isinstance(self.final, Model):
            codes = links.predictions(self.final, values).astype(np.intp)
        elif self.final is not None and values.shape[1] == 1:
            codes = (values[:, 0] > 0).astype(np.intp)
        else:
            codes = values.argmax(axis=1)
        return self.classes[codes]

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """Class probabilities of the rows of X, shape (n_rows, n_classes)."""
        if self.classes is None or any(m.output == "votes" for m in self.ensemble_members):
            kind = "a regressor" if self.classes is None else "a hard vote"
            raise InputTypeError(f"predict_proba is not available for {kind}. Use predict.")
        values = self._final_scores(X, n_jobs)
        if self.final is None:
            return values
        if isinstance(self.final, LinearModel):
            return links.LINKS[self.final.link](values)
        shares = np.zeros((len(values), len(self.classes)))
        shares[:, self.final.classes.astype(np.intp)] = links.probabilities(self.final, values)
        return shares

    def decision_function(  # type: ignore[override]  # no rounds, and no offset
        self, X: object, *, n_jobs: int | None = None
    ) -> Floats:
        """Raw scores of the final model of a stack of classifiers.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes).
        """
        final = self.final
        has_shares = isinstance(final, Model) and final.link in links.SHARE_LINKS
        if self.classes is None or final is None or has_shares:
            raise InputTypeError(
                "decision_function is there for stacks of classifiers whose final estimator has "
                "scores. Use predict, or predict_proba of a classifier."
            )
        return links.decision(self._final_scores(X, n_jobs))

    def _final_scores(self, X: object, n_jobs: int | None) -> Floats:
        """Raw scores of the final model; without one, the columns."""
        n_threads = checked_threads(n_jobs)
        raw = read_raw(X, self.schema, "the ensemble")
        columns = np.zeros((int(raw.columns.n_rows), self.n_columns))
        for member in self.ensemble_members:
            outputs = member.outputs(raw, n_threads)
            columns[:, member.places] += member.weight * outputs[:, member.taken]
        columns /= self.divisor
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
        scores = prediction.table_scores(self.final, table, n_threads=n_threads)
        return links.LINKS[self.final.link](scores) if self.classes is None else scores

    # ---- SHAP values ----

    def shap_values(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> Floats:
        """Contribution of each feature to the predictions of the rows of X.

        They are exact, and exist where predictions are linear in the raw scores of the members:
        means of regressors and forests, and stacks with a linear final model over them.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With several columns (n_rows, n_features, n_columns): class probabilities, log-odds of a
            stack, or targets.
        """
        n_threads = checked_threads(n_jobs)
        maps = [self._linear_map(member, "shap_values") for member in self.ensemble_members]
        raw = read_raw(X, self.schema, "the ensemble")
        background_rows = None if background is None else read_raw(background, self.schema)
        n_outputs = maps[0].shape[1]
        total = np.zeros((int(raw.columns.n_rows), self.schema.n_features, n_outputs))
        for member, linear in zip(self.ensemble_members, maps, strict=True):
            member_background = None if background_rows is None else member.table(background_rows)
            values = shap.table_shap_values(
                member.model, member.table(raw), member_background, n_threads
            )
            contributions = values @ linear
            # A member may have a column several times, and derived features count to their columns.
            for feature, column in enumerate(member.model.schema.column_of):
                total[:, member.features[column]] += contributions[:, feature]
        return total[:, :, 0] if n_outputs == 1 else total

    def expected_value(self, *, background: object = None, n_jobs: int | None = None) -> Floats:
        """Prediction that SHAP values are relative to, shape (n_columns,)."""
        n_threads = checked_threads(n_jobs)
        background_rows = None if background is None else read_raw(background, self.schema)
        total: Floats | float = 0.0
        for member in self.ensemble_members:
            linear = self._linear_map(member, "expected_value")
            member_background = None if background_rows is None else member.table(background_rows)
            expected = shap.table_expected(member.model, member_background, n_threads)
            total = total + expected @ linear
            if member.model.link == "share_of_two":  # the outputs of a score of 0 are (1, 0)
                total = total + self._output_map(member)[0]
        if isinstance(self.final, LinearModel):
            total = total + self.final.intercept
        return np.asarray(total)

    def _linear_map(self, member: EnsembleMember, method: str) -> Floats:
        """Matrix from the scores that SHAP values explain to the share of a member."""
        is_linear = member.model.link in ("identity", *links.SHARE_LINKS)
        has_votes = member.output in ("votes", "vote_shares")
        if not is_linear or has_votes or member.model.combine == "median":
            kind = f"{member.output} of a {member.model.kind} with the link {member.model.link!r}"
            raise InputTypeError(
                f"{method} is not available for an ensemble with the member {member.name!r}: "
                f"{kind} are not sums of trees, so there are no exact SHAP values of the ensemble. "
                "Explain the member itself, or use shap.PermutationExplainer of predict_proba."
            )
        if self.passthrough or isinstance(self.final, Model):
            raise InputTypeError(
                f"{method} is not available for a stack whose final estimator is not a linear "
                "function of its members alone. Explain the members and the final estimator "
                "themselves, or use shap.PermutationExplainer of predict."
            )
        if member.model.link == "share_of_two":  # the score is the second of two probabilities
            return np.array([[-1.0, 1.0]]) @ self._output_map(member)
        return self._output_map(member)

    def _output_map(self, member: EnsembleMember) -> Floats:
        """Matrix from outputs of a member to predictions of the ensemble."""
        matrix = np.zeros((member.n_columns, self.n_columns))
        matrix[member.taken, member.places] = member.weight / self.divisor
        return matrix @ self.final.coef.T if isinstance(self.final, LinearModel) else matrix

    # ---- files ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ensemble to a file that `load` reads; a failure leaves an existing file."""
        if os.fsdecode(path).lower().endswith(".json"):
            raise ValueError(
                f"save to {os.fsdecode(path)!r} is not allowed: ensembles have no JSON form. Use "
                "a name that ends in .arb, or save the members by their to_json."
            )
        data = ensemble_bytes(self)
        remove_orphans(path)
        write_file(path, data)

    def __repr__(self) -> str:
        return f"EnsemblePredictor({self.kind}, {counted(len(self.ensemble_members), 'member')})"

    def validate(self) -> None:
        """Raise ValueError unless the parts fit together; for an ensemble from a file."""
        require(self.kind in ("regressor", "classifier"), f"the kind {self.kind!r}")
        require((self.kind == "classifier") == (self.classes is not None), "classes and kind")
        require(self.ensemble_members, "no members")
        check_metadata(self.metadata)
        links.validate_names(self.schema)
        require(self.n_columns >= 1 and self.divisor > 0, "columns and divisor")
        for member in self.ensemble_members:
            self._validate_member(member)
        n_final = self.n_columns + self.schema.n_features * self.passthrough
        n_classes = 0 if self.classes is None else len(self.classes)
        if isinstance(self.final, LinearModel):
            n_outputs = len(self.final.intercept)
            require(self.final.coef.shape == (n_outputs, n_final), "shape of coefficients")
            require(self.final.link in _LINEAR_MODEL_LINKS, f"the link {self.final.link!r}")
            is_class = self.final.link != "identity"
            require(is_class == (self.kind == "classifier"), "link of the final model")
            is_single = n_classes == _TWO_CLASSES or self.classes is None
            require(n_outputs == (1 if is_single else n_classes), "outputs of the final model")
        elif self.final is not None:
            require(self.final.schema.n_columns == n_final, "features of the final model")
            require(self.final.schema.offset is None, "a final model with an offset")
            require(self.final.kind == self.kind and not self.final.targets, "final model")
            if self.final.classes is not None:
                codes = self.final.classes
                is_code = codes.dtype.kind in "iu" and ((codes >= 0) & (codes < n_classes)).all()
                require(is_code, "classes of the final model")
        elif self.classes is not None:
            require(self.n_columns == n_classes, f"{self.n_columns} columns")
        else:
            filled = set[int]().union(*(member.places.tolist() for member in self.ensemble_members))
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


_FIELDS = {"kind": str, "n_columns": int, "divisor": float, "passthrough": bool}
_DICTS = ("provenance", "metadata")
_INDICES = ("features", "taken", "places")


def ensemble_bytes(ensemble: EnsemblePredictor) -> bytes:
    """Bytes of a file of the ensemble."""
    arrays: dict[str, NDArray[Any]] = {}
    header: dict[str, Any] = {name: getattr(ensemble, name) for name in _FIELDS}
    header["schema"] = model_file.describe_schema(ensemble.schema, arrays)
    header["classes"] = model_file.describe_classes(ensemble.classes, arrays)
    header["members"] = []
    for i, member in enumerate(ensemble.ensemble_members):
        described = {"name": member.name, "output": member.output, "weight": member.weight}
        header["members"].append(described)
        arrays[f"member {i}"] = _section(member.model)
        arrays |= {f"member {i} {name}": getattr(member, name) for name in _INDICES}
    check_metadata(ensemble.metadata)
    for name in _DICTS:
        if getattr(ensemble, name):
            header[name] = getattr(ensemble, name)
    if isinstance(ensemble.final, LinearModel):
        header["final"] = ensemble.final.link
        arrays |= {"coef": ensemble.final.coef, "intercept": ensemble.final.intercept}
    elif ensemble.final is not None:
        header["final"] = "model"
        arrays["final"] = _section(ensemble.final)
    return pack(model_file.ENSEMBLE, header, arrays)


def read_ensemble(data: bytes, name: str) -> EnsemblePredictor:
    """Ensemble in the bytes of a file, validated; error messages call it `name`."""
    with naming_errors(model_file.ENSEMBLE, name):
        header, arrays = unpack(model_file.ENSEMBLE, data)
        values = typed_fields(
            {"provenance": {}, "metadata": {}, **header}, _FIELDS | dict.fromkeys(_DICTS, dict)
        )
        budget = Budget(len(data))
        classes = model_file.read_classes(header["classes"], arrays, budget)
        if isinstance(classes, tuple):
            raise TypeError("classes of several targets")
        ensemble = EnsemblePredictor(
            schema=model_file.read_schema(header["schema"], arrays, budget),
            classes=classes,
            ensemble_members=tuple(
                _read_member(i, member, arrays, budget)
                for i, member in enumerate(header["members"])
            ),
            final=_read_final(header.get("final"), arrays, budget),
            **values,
        )
        ensemble.validate()
    return ensemble


def _section(model: Model) -> NDArray[np.uint8]:
    return np.frombuffer(model_file.to_bytes(model), np.uint8)


def _read_model(array: NDArray[Any], budget: Budget) -> Model:
    if array.dtype != np.uint8:
        raise TypeError(f"a model of type {array.dtype}")
    return model_file.from_bytes(array.tobytes(), "a member", budget)


def _read_member(
    i: int, described: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], budget: Budget
) -> EnsembleMember:
    values = typed_fields(described, {"name": str, "output": str, "weight": float})
    indices: dict[str, Any] = {part: arrays[f"member {i} {part}"] for part in _INDICES}
    if any(index.dtype != np.int64 or index.ndim != 1 for index in indices.values()):
        raise TypeError(f"indices of the member {values['name']!r}")
    return EnsembleMember(model=_read_model(arrays[f"member {i}"], budget), **values, **indices)


def _read_final(
    described: object, arrays: Mapping[str, NDArray[Any]], budget: Budget
) -> Model | LinearModel | None:
    if described is None:
        return None
    if described == "model":
        return _read_model(arrays["final"], budget)
    coef, intercept = arrays["coef"], arrays["intercept"]
    is_linear = coef.dtype == intercept.dtype == np.float64 and intercept.ndim == 1
    if type(described) is not str or not is_linear:
        raise TypeError(f"the final model {described!r}")
    return LinearModel(coef, intercept, described)
