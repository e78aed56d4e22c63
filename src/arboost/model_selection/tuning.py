"""Tuning: the best parameters of a search, the estimator refitted with them, and the study."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Study

__all__ = ["Tuning"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuning:
    """Result of `tune`.

    Attributes
    ----------
    estimator : estimator
        Fitted to all rows with the best parameters.
    params : mapping of str to object
        The best parameters: those that the search has set, the number of rounds that early stopping
        has found, and the values in place of "auto". ``estimator.set_params(**params)`` sets them.
    score : float
        Metric of the best parameters on the held-out rows.
    default_score : float
        Metric of the parameters of the given estimator on the same rows.
    metric : str
    greater_is_better : bool
    study : optuna.Study
    trials : tuple of dict
        One entry for each trial: "number", "state" ("complete", "pruned" or "fail"), "score",
        "rounds", "seconds", "params", and the "reason" of a failure.
    stop_reason : {"trials", "seconds", "interrupted"}
    """

    estimator: Any
    params: Mapping[str, Any]
    score: float
    default_score: float
    metric: str
    greater_is_better: bool
    study: Study
    trials: tuple[dict[str, Any], ...]
    stop_reason: str

    def _lines(self) -> list[tuple[str, str]]:
        states = [one["state"] for one in self.trials]
        counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        given = f"{self.default_score:.6g} with the given parameters"
        lines = [
            ("estimator", type(self.estimator).__name__),
            (self.metric, f"{self.score:.6g} ({given})"),
            ("trials", f"{len(states)} ({', '.join(counts)}), ended by {self.stop_reason}"),
        ]
        return [*lines, *((name, _shown(value)) for name, value in self.params.items())]

    def __repr__(self) -> str:
        lines = self._lines()
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name.ljust(width)}  {text}" for name, text in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._lines()
        )
        return f"<table><tbody>{rows}</tbody></table>"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
