"""SHAP values of ensembles whose predictions are linear in the scores of their members.

SHAP values of a sum are the sum of SHAP values. So the values of a mean of regressors or forests,
and of a stack with a linear final model over them, follow exactly from those of the members. Class
probabilities of boosters are no sums of trees: they are refused, with the member's name.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from arboost.data.table import apply_raw, read_raw
from arboost.explain.shap import table_expected, table_shap_values
from arboost.model.ensemble import Ensemble, EnsembleMember, LinearModel

__all__ = ["ensemble_expected_value", "ensemble_shap_values"]

Floats = NDArray[np.float64]


def ensemble_shap_values(
    ensemble: Ensemble, X: object, background: object, *, n_threads: int
) -> Floats:
    """Return the SHAP values of the rows of X.

    The shape is (n_rows, n_features), with several columns (n_rows, n_features, n_columns): class
    probabilities, log-odds of a stack, or targets.
    """
    maps = [_linear_map(ensemble, member, "shap_values") for member in ensemble.members]
    raw = read_raw(X, ensemble.schema, "the ensemble")
    others = None if background is None else read_raw(background, ensemble.schema)
    n_outputs = maps[0].shape[1]
    total = np.zeros((int(raw.columns.n_rows), ensemble.schema.n_features, n_outputs))
    for member, linear in zip(ensemble.members, maps, strict=True):
        features, schema = member.features.tolist(), member.model.schema
        table = apply_raw(raw.select(features), schema)
        behind = None if others is None else apply_raw(others.select(features), schema)
        values = table_shap_values(member.model, table, behind, n_threads)
        parts = values @ linear
        # A member may have a column several times, and derived features count to their columns.
        for place, column in enumerate(schema.column_of):
            total[:, features[column]] += parts[:, place]
    return total[:, :, 0] if n_outputs == 1 else total


def ensemble_expected_value(ensemble: Ensemble, background: object, *, n_threads: int) -> Floats:
    """Return the prediction from which the SHAP values count, shape (n_columns,)."""
    others = None if background is None else read_raw(background, ensemble.schema)
    total: Floats | float = 0.0
    for member in ensemble.members:
        linear = _linear_map(ensemble, member, "expected_value")
        features, schema = member.features.tolist(), member.model.schema
        behind = None if others is None else apply_raw(others.select(features), schema)
        expected = table_expected(member.model, behind, n_threads)
        total = total + expected @ linear + _offset(member) @ _placed(ensemble, member)
    if isinstance(ensemble.final, LinearModel):
        total = total + ensemble.final.intercept
    return np.asarray(total)


def _linear_map(ensemble: Ensemble, member: EnsembleMember, method: str) -> Floats:
    """Return the matrix from the scores that SHAP values explain to the share of a member."""
    is_linear = member.model.link in ("identity", "shares", "share_of_two")
    votes = member.output in ("votes", "vote_shares")
    if not is_linear or votes or member.model.combine == "median":
        kind = f"{member.output} of a {member.model.kind} with the link {member.model.link!r}"
        raise TypeError(
            f"{method} was asked of an ensemble with the member {member.name!r}: {kind} are no "
            "sums of trees, so there are no exact SHAP values of the ensemble. Explain the member "
            "itself, or use shap.PermutationExplainer of predict_proba."
        )
    if ensemble.passthrough or not (
        ensemble.final is None or isinstance(ensemble.final, LinearModel)
    ):
        raise TypeError(
            f"{method} was asked of a stack whose final estimator is no linear function of its "
            "members alone. Explain the members and the final estimator themselves, or use "
            "shap.PermutationExplainer of predict."
        )
    if member.model.link == "share_of_two":  # the score is the second of two probabilities
        return np.array([[-1.0, 1.0]]) @ _placed(ensemble, member)
    return _placed(ensemble, member)


def _offset(member: EnsembleMember) -> Floats:
    """Return the outputs of a member where its scores are 0."""
    return (
        np.array([1.0, 0.0]) if member.model.link == "share_of_two" else np.zeros(member.n_columns)
    )


def _placed(ensemble: Ensemble, member: EnsembleMember) -> Floats:
    """Return the matrix from outputs of a member to predictions of the ensemble."""
    matrix = np.zeros((member.n_columns, ensemble.n_columns))
    matrix[member.taken, member.places] = member.weight / ensemble.divisor
    return matrix @ ensemble.final.coef.T if isinstance(ensemble.final, LinearModel) else matrix
