"""Fitted ensembles of models without training code or scikit-learn: predictions, SHAP, files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import threads
from arboost.data.schema import Schema
from arboost.explain.ensemble_shap import ensemble_expected_value, ensemble_shap_values
from arboost.formats.ensemble_file import ensemble_bytes
from arboost.model.ensemble import Ensemble
from arboost.model.predict import AsEstimator, decision
from arboost.params.check import check
from arboost.report.methods import report
from arboost.write import remove_orphans, write_file

__all__ = ["EnsemblePredictor"]


class EnsemblePredictor(AsEstimator):
    """A fitted ensemble of arboost's own models: the result of `load` for its file.

    Columns are matched by name as in ``fit``. `n_jobs` is the number of threads (None for all that
    this process may use); predictions do not depend on it.

    Parameters
    ----------
    ensemble : Ensemble
    """

    report = report

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble

    @property
    def kind(self) -> str:
        """Either "classifier" or "regressor"."""
        return self._ensemble.kind

    @property
    def classes(self) -> NDArray[Any] | None:
        """Class labels, sorted; None for regression."""
        return self._ensemble.classes

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""
        return self._ensemble.schema

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; x0, x1 and so on where the table had none."""
        return self._ensemble.schema.shown_names

    @property
    def members(self) -> dict[str, Any]:
        """Predictors of the members by name."""
        return {member.name: member.model for member in self._ensemble.members}

    @property
    def provenance(self) -> dict[str, Any]:
        """Metadata of the fit."""
        return self._ensemble.provenance

    @property
    def metadata(self) -> dict[str, Any]:
        """Values of the user, by name, which files keep as JSON."""
        return self._ensemble.metadata

    def with_provenance(self, entries: Mapping[str, Any]) -> EnsemblePredictor:
        """Return the ensemble with more metadata of the fit, which files keep as JSON."""
        provenance = {**self._ensemble.provenance, **entries}
        return EnsemblePredictor(replace(self._ensemble, provenance=provenance))

    def to(self, device: str) -> EnsemblePredictor:
        """Return the ensemble with the trees of all members on another device.

        As `arboost.Predictor.to`, but for tables of the host only.
        """
        return EnsemblePredictor(self._ensemble.on_device(device))

    def predict(self, X: object, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the predicted values or class labels of the rows of X."""
        return self._ensemble.predictions(X, _threads(n_jobs))

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the class probabilities of the rows of X, shape (n_rows, n_classes)."""
        return self._ensemble.probabilities(X, _threads(n_jobs))

    def decision_function(  # type: ignore[override]  # no rounds, and no offset
        self, X: object, *, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the raw scores of the final model of a stack of classifiers.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes).
        """
        return decision(self._ensemble.decision_scores(X, _threads(n_jobs)))

    def shap_values(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the contribution of each feature to the predictions of the rows of X.

        They are exact, and exist where predictions are linear in the raw scores of the members:
        means of regressors and forests, and stacks with a linear final model over them.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With classes or several targets (n_rows, n_features, n_columns).
        """
        n_threads = _threads(n_jobs)
        return ensemble_shap_values(self._ensemble, X, background, n_threads=n_threads)

    def expected_value(
        self, *, background: object = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the prediction from which the SHAP values count, shape (n_columns,)."""
        n_threads = _threads(n_jobs)
        return ensemble_expected_value(self._ensemble, background, n_threads=n_threads)

    def predict_files(
        self,
        source: object,
        path: str | os.PathLike[str],
        *,
        columns_to_keep: Sequence[str] | None = None,
        method: str = "predict",
        batch_rows: int = 131_072,
        n_jobs: int | None = None,
        escape_formulas: bool = False,
    ) -> int:
        """Write the predictions of rows that need not fit in memory; return their number.

        As `arboost.Predictor.predict_files`, with the methods "predict" and "predict_proba".
        """
        from arboost.model.predict_files import predict_to_file

        return predict_to_file(
            self,
            source,
            path,
            columns_to_keep=columns_to_keep,
            method=method,
            batch_rows=batch_rows,
            n_jobs=n_jobs,
            escape_formulas=escape_formulas,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ensemble to a file that `load` reads; a failure leaves an existing file."""
        if os.fsdecode(path).lower().endswith(".json"):
            raise ValueError(
                f"save to {os.fsdecode(path)!r} is not allowed: ensembles have no JSON form. Use "
                "a name that ends in .arb, or save the members by their to_json."
            )
        data = ensemble_bytes(self._ensemble)
        remove_orphans(path)
        write_file(path, data)

    def __repr__(self) -> str:
        count = len(self._ensemble.members)
        return f"EnsemblePredictor({self.kind}, {count} {'member' if count == 1 else 'members'})"


def _threads(n_jobs: object) -> int:
    return threads(check({"n_jobs": n_jobs})["n_jobs"])
