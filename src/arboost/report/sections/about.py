"""The model itself: kind, size, parameters, timings, versions, and how to repeat the report."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from arboost.backend import core
from arboost.model.model import Model
from arboost.params.kinds import Param
from arboost.pictures.summary import PARAMETER_TABLES, Summary, value_text
from arboost.report.inputs import ReportInput
from arboost.report.models import ReportModel

__all__ = ["about_section", "model_kind", "model_name"]

_MOST_TEXT = 300  # characters of a parameter


def model_name(model: ReportModel) -> str:
    """Return the name of a model: its class, for loaded models its kind."""
    if model.is_estimator:
        return type(model.model).__name__
    return model_kind(model)


def model_kind(model: ReportModel) -> str:
    """Return the kind of a model in words, such as "gradient boosting classifier"."""
    if model.is_estimator:
        words = re.findall(r"[A-Z][a-z0-9]*", type(model.model).__name__)
        return " ".join(words).lower().replace("ada boost", "AdaBoost") or "estimator"
    engine = model.engine
    if engine is None:
        return f"ensemble {model.kind}"
    if engine.combine == "mean":
        return f"{'decision tree' if engine.n_trees == 1 else 'forest'} {model.kind}"
    if engine.combine == "median" or "algorithm" in engine.params:
        return f"AdaBoost {model.kind}"
    return f"gradient boosting {model.kind}"


def about_section(inputs: ReportInput, place: int) -> dict[str, Any]:
    """Return facts, parameters, commands and the hash of a model."""
    model = inputs.models[place]
    return {
        "facts": [[label, text] for label, text in _facts(model)],
        "params": _params(model),
        "repeat": _repeat(inputs, place),
        "hash": model.file_hash,
    }


def _facts(model: ReportModel) -> Iterator[tuple[str, str]]:
    if model.engine is not None:
        yield from Summary(model.engine).facts.items()
    else:
        yield "features", f"{model.schema.n_features:,}"
        members = getattr(model.model, "members", None) or getattr(model.model, "estimators_", None)
        if members:
            yield "members", f"{len(members):,}: {_member_names(members)}"
        if model.classes is not None:
            yield "classes", f"{len(model.classes):,}"
    score = getattr(model.model, "oob_score_", None)
    if isinstance(score, float) and np.isfinite(score):
        name = "accuracy" if model.classes is not None else "R\N{SUPERSCRIPT TWO}"
        yield "out-of-bag score", f"{score:.4f} ({name})"
    reason = getattr(model.model, "stop_reason_", None)
    if reason:
        yield "end of training", str(reason)
    yield "report by", f"arboost {core.version()}"
    yield "Python", platform.python_version()
    yield "NumPy", np.__version__


def _member_names(members: Any) -> str:
    given = members.values() if isinstance(members, Mapping) else members
    names = [type(getattr(one, "estimator", one)).__name__ for one in given]
    shown = sorted(dict.fromkeys(names))
    return ", ".join(f"{names.count(name)} {name}" for name in shown)


def _params(model: ReportModel) -> list[list[str | None]]:
    """Return name, value and default of each parameter; the default is None where unknown."""
    if model.is_estimator:
        import inspect

        defaults = {
            name: one.default
            for name, one in inspect.signature(type(model.model).__init__).parameters.items()
            if one.default is not one.empty
        }
        given = model.given.get_params(deep=False)
        return [
            [name, _text(value), _text(defaults[name]) if name in defaults else None]
            for name, value in given.items()
        ]
    engine = model.engine
    if engine is None:
        return []
    table = _table_of(engine)
    return [
        [name, _text(value), _text(table[name].record(table[name].default)) if table else None]
        for name, value in engine.params.items()
    ]


def _table_of(engine: Model) -> Mapping[str, Param]:
    """Return the parameters of the estimator that made a model: those with most equal defaults."""
    tables = [one for one in PARAMETER_TABLES[engine.kind] if engine.params.keys() <= one.keys()]

    def n_changed(table: Mapping[str, Param]) -> int:
        return sum(
            _text(value) != _text(table[name].record(table[name].default))
            for name, value in engine.params.items()
        )

    return min(tables, key=n_changed, default={})


def _text(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _repeat(inputs: ReportInput, place: int) -> list[list[str]]:
    """Return the commands and code that make this report again."""
    target = inputs.target or "y"
    quoted = repr(target) if inputs.target else "y"
    more = ", X_train=X_train" if inputs.training is not None else ""
    if inputs.training is not None and inputs.training.truth is not None and not inputs.target:
        more += ", y_train=y_train"
    more += ", sample_weight=weight" if inputs.weight is not None else ""
    more += ", compare=other" if len(inputs.models) > 1 else ""
    code = (
        "import arboost\n"
        'model = arboost.load("model.arb")\n'
        f'model.report(X, {quoted}{more}).save("report.html")'
    )
    if inputs.models[place].file_hash is None:
        code = f'model.report(X, {quoted}{more}).save("report.html")'
        return [["Python", code]]
    options = " --train train.csv" if inputs.training is not None else ""
    options += " --compare other.arb" if len(inputs.models) > 1 else ""
    found = [["Python", code], ["model file", "sha256sum model.arb"]]
    if inputs.weight is None:
        command = f"arboost report model.arb test.csv --target {shlex.quote(target)}{options}"
        command += " -o report.html"
        found.insert(0, ["command line", command])
    return found
