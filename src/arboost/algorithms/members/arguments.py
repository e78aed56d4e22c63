"""Arguments and parameters of members: the name of the row weights, random states."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

__all__ = ["random_states", "set_random_states", "weight_name"]


def weight_name(estimator: Any) -> str | None:
    """Return the name of the row weights among the arguments of fit; None where there is none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if not isinstance(estimator, Pipeline):
        return None
    step, last = estimator.steps[-1]
    name = weight_name(last)
    if name is None or get_config()["enable_metadata_routing"]:
        return name  # metadata routing hands the weights to the steps that request them
    return f"{step}__{name}"


def set_random_states(estimator: Any, seed: int, number: int) -> None:
    """Set all random_state parameters, nested ones too, by a seed and a member's number."""
    names = sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )
    if names:
        states = random_states(seed, number, len(names))
        estimator.set_params(**dict(zip(names, states, strict=True)))


def random_states(seed: int, number: int, n_states: int) -> list[int]:
    """Return the random states of a member, by a seed and its number."""
    # Below 2^31, the limit that all estimators accept.
    states: list[int] = (
        np.random.SeedSequence([seed, number]).generate_state(n_states) >> 1
    ).tolist()
    return states
