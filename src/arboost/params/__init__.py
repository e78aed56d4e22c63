"""Parameters of estimators, each declared once, and suggestions for unknown names.

Programs that build options from the declarations import from here: `declarations_of` an estimator,
`Param.parse` for texts, `check` for values.
"""

from arboost.params.kinds import Choice, Flag, Fraction, Integer, Param, Real, Search
from arboost.params.records import check, declarations_of
from arboost.params.suggestions import Suggestion, suggest_parameter

__all__ = [
    "Choice",
    "Flag",
    "Fraction",
    "Integer",
    "Param",
    "Real",
    "Search",
    "Suggestion",
    "check",
    "declarations_of",
    "suggest_parameter",
]
