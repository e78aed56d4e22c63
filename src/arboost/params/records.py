"""Small frozen records of checked parameters: the few values that one step of a fit reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

__all__ = ["BinParams", "ParamRecord", "StoppingParams", "ValidationParams"]


@dataclass(frozen=True, kw_only=True)
class ParamRecord:
    """A record whose fields are parameters of the same names."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Return the record of an estimator's checked parameters.

        A field with a default is a parameter that not every estimator has.

        Examples
        --------
        >>> BinParams.of({"max_bins": 63, "tree_method": "hist", "bundling": True}).max_bins
        63
        """
        names = [field.name for field in fields(cls)]
        return cls(**{name: params[name] for name in names if name in params})


@dataclass(frozen=True, kw_only=True)
class BinParams(ParamRecord):
    """Parameters that bins and their storage depend on."""

    max_bins: int
    tree_method: str
    bundling: bool
    max_conflict_rate: float = 0.0
    device: str = "cpu"


@dataclass(frozen=True, kw_only=True)
class ValidationParams(ParamRecord):
    """Parameters that choose held-out rows among the training rows."""

    validation_split: str
    validation_fraction: float
    random_state: int


@dataclass(frozen=True, kw_only=True)
class StoppingParams(ParamRecord):
    """Parameters that watch and end the training loop."""

    eval_metric: Any
    n_iter_no_change: int | None
    tol: float
    max_time: float | None
    verbose: int
