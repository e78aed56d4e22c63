"""Report of one model, or of two, on a table of rows: its data, and its page.

Python computes one JSON object, the payload of `arboost.report.payload`; the browser draws it. The
page is `page/template.html` with the files that it names, styles, libraries and scripts, and the
payload inlined. It makes no request: its content security policy forbids every one.
"""

from __future__ import annotations

import datetime
import html
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from arboost.plots.palette import SERIES, SERIES_ON_DARK
from arboost.report.inputs import ReportOptions, read_input
from arboost.report.payload import make_payload
from arboost.text import counted
from arboost.write import remove_orphans, write_file

_HEIGHT = 760  # pixels of a whole report in a notebook, which scrolls inside its frame

_SHARED = ("format", "title", "created", "arboost", "task", "target", "classes")
_OF_MODEL = ("name", "kind")
# Section -> parts of the payload, and parts of each model, that it shows.
_PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "comparison": (("comparison",), ()),
    "data": (("data",), ()),
    "scores": ((), ("scores", "baseline_text")),
    "learning": ((), ("learning",)),
    "ranking": ((), ("binary", "multiclass")),
    "calibration": ((), ("binary", "multiclass")),
    "threshold": ((), ("binary",)),
    "confusion": ((), ("confusion",)),
    "regression": ((), ("regression",)),
    "coverage": ((), ("regression",)),
    "classes": ((), ("classes",)),
    "segments": ((), ("segments",)),
    "importances": ((), ("importances",)),
    "shap": (("rows",), ("shap", "predictions")),
    "dependence": (("data",), ("dependence", "outputs")),
    "rows": (("rows", "data"), ("shap", "predictions", "flips", "flip_rule", "trees")),
    "trees": (("rows",), ("trees", "predictions")),
    "theory": ((), ("theory",)),
    "forest": ((), ("forest",)),
    "about": ((), ("facts", "params", "timings", "hash", "notes")),
    "repeat": ((), ("repeat",)),
}
SECTIONS = tuple(_PARTS)

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


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
        return {score["name"]: score["value"] for score in self.payload["models"][0]["scores"]}

    @property
    def sections(self) -> tuple[str, ...]:
        """Names of the sections that `section` takes."""
        return SECTIONS

    def section(self, *names: str) -> ReportSection:
        """Pieces of the report, which notebooks show alone.

        Parameters
        ----------
        *names : str
            Some of `sections`, such as "calibration".
        """
        return ReportSection(self, names)

    def to_html(self) -> str:
        """The page: one HTML document that needs no network."""
        return assemble(self.payload)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; a failure leaves the file that was there before."""
        data = self.to_html().encode("utf-8")
        remove_orphans(path)
        write_file(path, data)

    def _repr_html_(self) -> str:
        return frame(self.to_html(), _HEIGHT)

    def __repr__(self) -> str:
        names = " and ".join(model["name"] for model in self.payload["models"])
        n_rows = self.payload["data"]["n_rows"]
        return f"Report({names}, {counted(n_rows, 'row')})"


class ReportSection:
    """Some sections of a report, shown alone in notebooks.

    Parameters
    ----------
    report : Report
    names : sequence of str
        Some of ``report.sections``.
    """

    def __init__(self, report: Report, names: Sequence[str]) -> None:
        self._report, self._names = report, _checked_sections(names)

    def to_html(self) -> str:
        """The page of these sections alone."""
        return assemble(self._report.payload, self._names)

    def _repr_html_(self) -> str:
        return frame(self.to_html())

    def __repr__(self) -> str:
        return f"ReportSection({', '.join(self._names)})"


def make_report(model: Any, X: object, y: object, **options: Any) -> Report:
    """Report of a model; `options` are the fields of `ReportOptions`."""
    start = time.perf_counter()
    inputs = read_input(model, X, y, ReportOptions(**options))
    n_seconds = time.perf_counter() - start
    payload, seconds = make_payload(inputs)
    total = _duration(time.perf_counter() - start)
    payload["created"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for rows, section in zip(inputs.model_rows, payload["models"], strict=True):
        section["timings"] = [
            [
                f"prediction of {rows.table.n_all_rows:,} rows",
                _duration(rows.model.timings["predict"]),
            ],
            ["this report", total],
        ]
    return Report(payload, {"read and predict": n_seconds, **seconds})


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def assemble(payload: Mapping[str, Any], only: Sequence[str] | None = None) -> str:
    """Report page of a payload as one HTML string.

    Parameters
    ----------
    payload
        The report as a JSON-able mapping, described in `arboost.report.payload`.
    only
        Names of `SECTIONS`: the page then has these sections alone, without header and navigation,
        and carries only their part of the payload. None: the whole report.

    Raises
    ------
    ValueError
        If `only` is empty or has a name that is not in `SECTIONS`.
    """
    shown = None if only is None else _checked_sections(only)
    carried = dict(payload) if shown is None else _pruned(payload, shown)
    parts = {
        "title": html.escape(str(payload.get("title", "Report"))),
        "series_colours": _series_colours(),
        "payload": _json({**carried, "only": shown}),
    }

    def text(match: re.Match[str]) -> str:
        name = match[1]
        if name in parts:
            return parts[name]
        return _script(_read(name)) if name.endswith(".js") else _read(name)

    return re.sub(r"\{\{(.+?)\}\}", text, _read("template.html"))


def frame(page: str, height: int = 420) -> str:
    """Inline frame of a page, for notebooks; the page corrects the frame's height."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="arboost report" loading="lazy" '
        f'style="width: 100%; height: {height:d}px; border: 0"></iframe>'
    )


def _checked_sections(names: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in _PARTS]
    if unknown or not names:
        got = repr(unknown[0]) if unknown else "no name"
        raise ValueError(
            f"section got {got}, but a report has the sections {', '.join(SECTIONS)}. Use one or "
            "more of them."
        )
    return tuple(names)


def _pruned(payload: Mapping[str, Any], sections: Sequence[str]) -> dict[str, Any]:
    shared = {*_SHARED, *(key for name in sections for key in _PARTS[name][0])}
    of_model = {*_OF_MODEL, *(key for name in sections for key in _PARTS[name][1])}
    models = [
        {key: value for key, value in model.items() if key in of_model}
        for model in payload["models"]
    ]
    return {key: value for key, value in payload.items() if key in shared} | {"models": models}


def _json(payload: Mapping[str, Any]) -> str:
    """JSON of which no part can end a script element."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _script(source: str) -> str:
    """Script element; the sequences of HTML that would end it are broken up."""
    safe = re.sub(r"<(?=/script|!--)", r"\\x3c", source, flags=re.IGNORECASE)
    return f"<script>\n{safe}\n</script>"


@cache
def _read(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _series_colours() -> str:
    """Style of the series, --c1 and so on, on light and on dark paper."""
    light, dark = (
        "".join(f"--c{i}: {colour}; " for i, colour in enumerate(colours, 1))
        for colours in (SERIES, SERIES_ON_DARK)
    )
    return f':root {{{light}}}\n@media screen {{:root[data-theme="dark"] {{{dark}}}}}'
