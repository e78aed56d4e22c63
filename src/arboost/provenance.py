"""What a model file tells of the fit behind it, beside the parameters.

Only what is the same whenever the model is: no times, no machine, no reason why a fit ended.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

__all__ = ["provenance_of"]


def provenance_of(
    n_rows: int, metric: str | None = None, best_score: float | None = None
) -> dict[str, Any]:
    """Return what is told of a fit, for JSON.

    Parameters
    ----------
    n_rows : int
        Rows that it learnt from.
    metric : str, optional
        What chose the last round, on rows that were set aside.
    best_score : float, optional
        That of the last round; left out where nothing chose it.
    """
    told: dict[str, Any] = {"version": _version(), "rows": int(n_rows)}
    if metric is not None and best_score is not None and math.isfinite(best_score):
        told |= {"metric": metric, "best_score": float(best_score)}
    return told


@cache
def _version() -> str:
    from importlib.metadata import version

    return version("arboost")
