"""A row of the tables of names: the same idea in five libraries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["LIBRARIES", "Row", "by_name"]

# Titles of the libraries, by the fields of a row.
LIBRARIES = {
    "sklearn": "scikit-learn",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
}


@dataclass(frozen=True)
class Row:
    """Names for one idea; several names are separated by spaces.

    Attributes
    ----------
    ours : str
        Names here: the first that an estimator has is its name there; "" where there is none.
    note : str
        Sentence on the use: another range of values, or the way to the same end.
    sklearn, xgboost, lightgbm, catboost : str
        Names of the libraries.
    """

    ours: str = ""
    note: str = ""
    sklearn: str = ""
    xgboost: str = ""
    lightgbm: str = ""
    catboost: str = ""

    def names(self, library: str | None = None) -> list[str]:
        """Return the names of one library, or of all of them."""
        chosen = LIBRARIES if library is None else (library,)
        return list(dict.fromkeys(" ".join(getattr(self, one) for one in chosen).split()))


def by_name(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the row of each name; the first row of a name counts.

    Examples
    --------
    >>> by_name([Row("n_jobs", xgboost="nthread", catboost="thread_count")])["nthread"].ours
    'n_jobs'
    """
    found: dict[str, Row] = {}
    for row in rows:
        for name in row.names():
            found.setdefault(name, row)
    return found
