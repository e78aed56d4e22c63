"""Report: the payload of models and rows, its page, and pieces of it for notebooks."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Sequence
from typing import Any

from arboost.report.inputs import ReportInput, ReportOptions, read_input
from arboost.report.payload import make_payload
from arboost.write import remove_orphans, write_file

_HEIGHT = 760  # pixels of a whole report in a notebook, which scrolls inside its frame


class Report:
    """A report of one model, or of two, on a table of rows.

    The result of ``model.report(X, y)``. Notebooks show it as a page inside the notebook.

    Parameters
    ----------
    payload : dict
        The data of the page, for JSON.
    seconds : dict of str to float
        Time of each section.

    Examples
    --------
    >>> import arboost
    >>> X, y = [[0], [1], [2], [3]], ["no", "no", "yes", "yes"]
    >>> report = arboost.DecisionTreeClassifier().fit(X, y).report(X, y)
    >>> report.scores["accuracy"]
    1
    >>> report
    Report(DecisionTreeClassifier, 4 rows)
    """

    def __init__(self, payload: dict[str, Any], seconds: dict[str, float] | None = None) -> None:
        self.payload = payload
        self.seconds = {} if seconds is None else seconds

    @property
    def scores(self) -> dict[str, float]:
        """Scores of the (first) model by name; the payload has their intervals."""
        return {one["name"]: one["value"] for one in self.payload["models"][0]["scores"]}

    @property
    def sections(self) -> tuple[str, ...]:
        """Names of the sections that `section` takes."""
        from arboost.report.page.assemble import SECTIONS

        return SECTIONS

    def section(self, *names: str) -> ReportSection:
        """Return pieces of the report, which notebooks show alone.

        Parameters
        ----------
        *names : str
            Some of `sections`, such as "calibration".
        """
        return ReportSection(self, names)

    def to_html(self) -> str:
        """Return the page: one HTML document that needs no network."""
        from arboost.report.page.assemble import assemble

        return assemble(self.payload)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; a failure leaves the file that was there before."""
        data = self.to_html().encode("utf-8")
        remove_orphans(path)
        write_file(path, data)

    def _repr_html_(self) -> str:
        from arboost.report.page.assemble import frame

        return frame(self.to_html(), _HEIGHT)

    def __repr__(self) -> str:
        names = " and ".join(model["name"] for model in self.payload["models"])
        n_rows = self.payload["data"]["n_rows"]
        return f"Report({names}, {n_rows:,} row{'' if n_rows == 1 else 's'})"


class ReportSection:
    """Some sections of a report, shown alone in notebooks.

    Parameters
    ----------
    report : Report
    names : sequence of str
        Some of ``report.sections``.
    """

    def __init__(self, report: Report, names: Sequence[str]) -> None:
        unknown = [name for name in names if name not in report.sections]
        if unknown or not names:
            given = repr(unknown[0]) if unknown else "no name"
            raise ValueError(
                f"section got {given}, but a report has the sections {', '.join(report.sections)}. "
                "Use one or more of them."
            )
        self._report, self._names = report, tuple(names)

    def to_html(self) -> str:
        """Return the page of these sections alone."""
        from arboost.report.page.assemble import assemble

        return assemble(self._report.payload, self._names)

    def _repr_html_(self) -> str:
        from arboost.report.page.assemble import frame

        return frame(self.to_html())

    def __repr__(self) -> str:
        return f"ReportSection({', '.join(self._names)})"


def make_report(inputs: ReportInput, start: float) -> Report:
    """Return the report of checked arguments; `start` is the clock when they were given."""
    payload, seconds = make_payload(inputs)
    seconds = {"read and predict": time.perf_counter() - start - sum(seconds.values()), **seconds}
    total = time.perf_counter() - start
    payload["created"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for model, one in zip(inputs.models, payload["models"], strict=True):
        one["timings"] = [
            [
                f"prediction of {inputs.tables[0].n_given:,} rows",
                _seconds(model.timings["predict"]),
            ],
            ["this report", _seconds(total)],
        ]
    return Report(payload, seconds)


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def report_of(model: Any, X: object, y: object, options: ReportOptions) -> Report:
    """Return the report of a model."""
    start = time.perf_counter()
    return make_report(read_input(model, X, y, options), start)
