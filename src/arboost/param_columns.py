"""Parameters that say what the columns of a table mean and how trees may use them."""

from __future__ import annotations

import math

from arboost.param_kinds import Param
from arboost.param_structures import (
    CategoricalFeatures,
    InteractionConstraints,
    Missing,
    MonotoneConstraints,
)

__all__ = ["COLUMNS"]

COLUMNS: dict[str, Param] = {
    param.name: param
    for param in (
        CategoricalFeatures(
            name="categorical_features",
            default="from_dtype",
            text="Columns that are categories whatever their type, as names, indices or a mask. "
            '"from_dtype" names none: categories are then columns of strings, and of the '
            "categorical types of pandas, Polars and Arrow, which they are in any case.",
            advice='Use for example categorical_features=["city", "day"].',
        ),
        Missing(
            name="missing",
            default=math.nan,
            text="A number that means missing in all columns of numbers, such as -999, or 0 in "
            "sparse tables; NaN, None and NA always do.",
            advice="Use missing=float('nan') for no such number.",
        ),
        MonotoneConstraints(
            name="monotone_constraints",
            default=None,
            text="Features, by name or index, in which predictions may only rise (1) or only fall "
            "(-1); a sequence has an entry for each feature, 0 for free ones.",
            advice='Use for example monotone_constraints={"age": 1}.',
        ),
        InteractionConstraints(
            name="interaction_constraints",
            default=None,
            text="Groups of features, by name or index, that may meet on a path from root to leaf; "
            "a feature in no group meets no other.",
            advice='Use for example interaction_constraints=[["age", "height"], ["income"]].',
        ),
    )
}
