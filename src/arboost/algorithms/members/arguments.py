"""Arguments and parameters of members: the name of row weights, random states."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

__all__ = ["set_random_states", "weight_name"]


def weight_name(estimator: Any) -> str | None:
    """Return what fit calls the weights of rows, None where it does not take any."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if not isinstance(estimator, Pipeline):
        return None
    step, last = estimator.steps[-1]
    name = weight_name(last)
    if name is None or get_config()["enable_metadata_routing"]:
        return name  # a pipeline that routes says itself who gets weights
    return f"{step}__{name}"


def set_random_states(estimator: Any, seed: int, number: int) -> None:
    """Set all parameters called random_state, nested ones too, from a seed and a number."""
    names = sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )
    # Below 2^31, the largest that all estimators take.
    bits = np.random.SeedSequence([seed, number]).generate_state(len(names)) >> 1
    if names:
        estimator.set_params(**dict(zip(names, bits.tolist(), strict=True)))
