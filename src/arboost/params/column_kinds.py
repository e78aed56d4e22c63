"""Kinds of parameters on the columns of a table that tell how their values are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from arboost.params.compound_kinds import is_feature, plain_value
from arboost.params.kinds import Param

__all__ = ["CalendarParts", "DateFormat"]

_WORDS = ("auto", "iso", "dayfirst", "monthfirst")


@dataclass(frozen=True, kw_only=True)
class DateFormat(Param):
    """Format of dates in strings; `check` returns pairs for a dict of columns."""

    type_name: ClassVar[str] = "str, dict, or None"
    annotation: ClassVar[str] = "str | Mapping[Any, str] | None"
    allowed: ClassVar[str] = (
        '"auto", "iso", "dayfirst", "monthfirst", a format such as "%d/%m/%Y", a dict from columns '
        "to formats, or None"
    )

    def check(self, value: object) -> Any:
        """Return a format, a list of [column, format], or None."""
        if value is None:
            return None
        if isinstance(value, list):  # checked before, or recorded
            value = dict(value)
        if isinstance(value, Mapping):
            if not all(map(is_feature, value)):
                raise TypeError(self.message(value))
            for one in value.values():
                if one == "auto" or not isinstance(self.check(one), str):
                    raise ValueError(self.message(value))
            return [[plain_value(column), str(one)] for column, one in value.items()]
        if not isinstance(value, str):
            raise TypeError(self.message(value))
        if value not in _WORDS and "%" not in value:
            raise ValueError(self.message(value))
        return str(value)

    def restore(self, recorded: Any) -> Any:
        """Return a dict of the pairs."""
        return dict(recorded) if isinstance(recorded, list) else recorded


@dataclass(frozen=True, kw_only=True)
class CalendarParts(Param):
    """Calendar parts of dates that are features."""

    options: tuple[str, ...] = ("hour", "weekday", "month", "dayofyear")
    type_name: ClassVar[str] = '"auto", list of str, or None'
    annotation: ClassVar[str] = "str | Sequence[str] | None"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return f'"auto", a list of some of {", ".join(map(repr, self.options))}, or None'

    def check(self, value: object) -> Any:
        """Return "auto", a list or None."""
        if value is None or (isinstance(value, str) and value == "auto"):
            return value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise (ValueError if isinstance(value, str) else TypeError)(self.message(value))
        if not value or not all(one in self.options for one in value):
            raise ValueError(self.message(value))
        return [one for one in self.options if one in value]
