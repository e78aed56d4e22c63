"""Report payload -> one self-contained HTML page.

The page is `template.html` with the styles, the vendored libraries, the modules of this folder and
the payload inlined. It makes no request: its content security policy forbids every one. The payload
is described in `arboost.report.payload`.
"""

import html
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

STYLES = ("theme", "layout", "charts", "tables", "explorers", "media")
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.min.js")
# In the order in which the browser reads them: each uses only modules before it.
MODULES = (
    "namespace.js",
    "format.js",
    "dom.js",
    "state.js",
    "tables.js",
    "charts.js",
    "sparklines.js",
    "data.js",
    "scores.js",
    "learning.js",
    "ranking.js",
    "threshold.js",
    "confusion.js",
    "regression.js",
    "segments.js",
    "importances.js",
    "beeswarm_answers.js",
    "beeswarm.js",
    "dependence.js",
    "row_finder.js",
    "contributions.js",
    "forest_nodes.js",
    "tree_drawing.js",
    "tree_explorer.js",
    "row_explorer.js",
    "theory.js",
    "about.js",
    "page.js",
)

_ROWS = ("rows",)
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
    "shap": (_ROWS, ("shap", "predictions")),
    "dependence": (("data",), ("dependence", "outputs")),
    "rows": (("rows", "data"), ("shap", "predictions", "flips", "flip_rule", "trees")),
    "trees": (_ROWS, ("trees", "predictions")),
    "theory": ((), ("theory",)),
    "forest": ((), ("forest",)),
    "about": ((), ("facts", "params", "timings", "hash", "notes")),
    "repeat": ((), ("repeat",)),
}
SECTIONS = tuple(_PARTS)

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def assemble(payload: Mapping[str, Any], only: Sequence[str] | None = None) -> str:
    """Return the report page of a payload as one HTML string.

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
    shown = None if only is None else _checked(only)
    carried = dict(payload) if shown is None else _pruned(payload, shown)
    parts = {
        "title": html.escape(str(payload.get("title", "Report"))),
        "style": "\n".join(_read(f"{name}.css") for name in STYLES),
        "libraries": "\n".join(_script(_read(name)) for name in LIBRARIES),
        "modules": "\n".join(_script(_read(name)) for name in MODULES),
        "payload": _json({**carried, "only": shown}),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("template.html"))


def frame(page: str, height: int = 420) -> str:
    """Return an inline frame of a page, for notebooks; the page corrects the frame's height."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="arboost report" loading="lazy" '
        f'style="width: 100%; height: {height:d}px; border: 0"></iframe>'
    )


def _checked(only: Sequence[str]) -> list[str]:
    names = [only] if isinstance(only, str) else list(only)
    unknown = [name for name in names if name not in _PARTS]
    if unknown or not names:
        given = f"{unknown[0]!r}" if unknown else "none"
        msg = f"only must name sections of a report, got {given}; choose from {', '.join(SECTIONS)}"
        raise ValueError(msg)
    return names


def _pruned(payload: Mapping[str, Any], sections: Sequence[str]) -> dict[str, Any]:
    shared = {*_SHARED, *(key for name in sections for key in _PARTS[name][0])}
    of_model = {*_OF_MODEL, *(key for name in sections for key in _PARTS[name][1])}
    models = [
        {key: value for key, value in model.items() if key in of_model}
        for model in payload["models"]
    ]
    return {key: value for key, value in payload.items() if key in shared} | {"models": models}


def _json(payload: Mapping[str, Any]) -> str:
    """Return JSON that no part of which can end a script element."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _script(source: str) -> str:
    """Return a script element; the sequences of HTML that would end it are broken up."""
    safe = re.sub(r"<(?=/script|!--)", r"\\x3c", source, flags=re.IGNORECASE)
    return f"<script>\n{safe}\n</script>"


@cache
def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
