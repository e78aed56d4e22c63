"""The model itself: facts and parameters, learning curves, and its trees."""

from __future__ import annotations

import base64
import inspect
import platform
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost import __version__
from arboost.losses.curves import margin_distribution, margins
from arboost.losses.intervals import sample_rows
from arboost.losses.metrics import log_losses
from arboost.models.tree_nodes import TextStyle, conditions, node_values
from arboost.plots.summary import Summary, parameter_table, value_text
from arboost.report.inputs import ModelRows
from arboost.report.models import ReportModel
from arboost.report.table import Floats, Index, Sample, rounded, rounded_counts
from arboost.text import shortened

_MOST_TEXT = 300  # characters of a parameter

_STAGES = 50  # of a curve that is computed here
_STAGED_ROWS = 3000
_STAGED_WORK = 3e6  # rows x trees, at most
_FEWEST_ROWS = 100
_MOST_MARGINS = 200
_TWO = 2
_OUT_OF_BAG = {"error": "error rate", "rmse": "RMSE"}

_MOST_NODES = 30_000  # of all models of a page; fewer where leaves hold several values
_MOST_TREES = 500
_MOST_WIDE = 10  # values of a leaf of several outputs
_LARGEST_NODE = 65_535  # of 16 bits
_STYLE = TextStyle(precision=5, max_label=40)
_ROUNDING = 2.0**-24  # of float32, in which tables often are


def model_name(model: ReportModel) -> str:
    """Name of a model: its class, for loaded models its kind."""
    if model.is_estimator:
        return type(model.model).__name__
    return model_kind(model)


def model_kind(model: ReportModel) -> str:
    """Kind of a model in words, such as "gradient boosting classifier"."""
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


def about_section(rows: ModelRows) -> dict[str, Any]:
    """Facts, parameters, commands and the hash of a model."""
    return {
        "facts": [[label, text] for label, text in _facts(rows.model)],
        "params": [[name, *map(_text, values)] for name, *values in _params(rows.model)],
        "repeat": _repeat(rows),
        "hash": rows.model.file_hash,
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
    yield "report by", f"arboost {__version__}"
    yield "Python", platform.python_version()
    yield "NumPy", np.__version__


def _member_names(members: Any) -> str:
    members = members.values() if isinstance(members, Mapping) else members
    names = [type(getattr(member, "estimator", member)).__name__ for member in members]
    shown = sorted(dict.fromkeys(names))
    return ", ".join(f"{names.count(name)} {name}" for name in shown)


def _params(model: ReportModel) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and default of each parameter; the default is empty where unknown."""
    if model.is_estimator:
        declared = inspect.signature(type(model.model).__init__).parameters
        for name, value in model.argument.get_params(deep=False).items():
            yield (
                name,
                value,
                declared[name].default if name in declared else inspect.Parameter.empty,
            )
    elif model.engine is not None:
        table = parameter_table(model.engine)
        for name, value in model.engine.params.items():
            default = table[name].record(table[name].default) if table else inspect.Parameter.empty
            yield name, value, default


def _text(value: Any) -> str | None:
    return None if value is inspect.Parameter.empty else shortened(value_text(value), _MOST_TEXT)


def _repeat(rows: ModelRows) -> list[list[str]]:
    """Commands and code that make this report again."""
    inputs = rows.inputs
    target = inputs.target or "y"
    quoted = repr(target) if inputs.target else "y"
    more = ", X_train=X_train" if inputs.training is not None else ""
    if inputs.training is not None and inputs.training.truth is not None and not inputs.target:
        more += ", y_train=y_train"
    more += ", sample_weight=weight" if inputs.weight is not None else ""
    more += ", compare=other" if len(inputs.model_rows) > 1 else ""
    code = (
        "import arboost\n"
        'model = arboost.load("model.arb")\n'
        f'model.report(X, {quoted}{more}).save("report.html")'
    )
    if rows.model.file_hash is None:
        code = f'model.report(X, {quoted}{more}).save("report.html")'
        return [["Python", code]]
    options = " --train train.csv" if inputs.training is not None else ""
    options += " --compare other.arb" if len(inputs.model_rows) > 1 else ""
    ways = [["Python", code], ["model file", "sha256sum model.arb"]]
    if inputs.weight is None:
        command = f"arboost report model.arb test.csv --target {shlex.quote(target)}{options}"
        command += " -o report.html"
        ways.insert(0, ["command line", command])
    return ways


def learning_section(rows: ModelRows) -> dict[str, Any] | None:
    """Learning curves of a fit; of a model without any, scores after each round."""
    runs = rows.model.history.get("runs")
    return _recorded(rows.model, runs) if runs else _staged(rows)


def _recorded(model: ReportModel, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metrics that a fit has recorded, by evaluation set."""
    metric = runs[0]["curves"][0]["metric"]
    series: list[dict[str, Any]] = []
    for run in runs:
        for curve in run["curves"]:
            if curve["metric"] != metric:
                continue
            y = rounded(curve["values"])
            series.append({"name": curve["set"], "x": run["rounds"], "y": y})
    return {
        "x": "rounds",
        "y": metric,
        "series": series,
        "best": runs[-1]["best"],
        "note": _recorded_note(model, runs),
    }


def _recorded_note(model: ReportModel, runs: Sequence[Mapping[str, Any]]) -> str:
    """Sentence on recorded curves, whose rounds may be others than those of the model.

    A search for rounds has other rounds than the model; continued training records added ones.
    """
    first, best = runs[0]["rounds"][0], runs[-1]["best"]
    note = "Recorded during the fit"
    if first > 1:
        note += f", which continued the training of {first - 1:,} rounds"
    if best is not None and best != model.n_rounds:
        note += f"; the model has {model.n_rounds:,} rounds"
    return f"{note}."


def _staged(rows: ModelRows) -> dict[str, Any] | None:
    """Score of the first rounds of a model on a sample of the rows."""
    model, engine = rows.model, rows.model.engine
    if engine is None or engine.n_rounds < _TWO or not model.is_whole:
        return None
    most = int(np.clip(_STAGED_WORK / engine.n_trees, _FEWEST_ROWS, _STAGED_ROWS))
    sampled = sample_rows(rows.n_rows, most)
    truth, weight = rows.truth[sampled], rows.weights(sampled)
    numbers = set((_thinned(engine.n_rounds, _STAGES) + 1).tolist())
    x, y = [], []
    for number, predicted in enumerate(model.stages(rows.table.sample(sampled)), start=1):
        if number not in numbers:
            continue
        x.append(number)
        if rows.classes:
            y.append(np.average(log_losses(truth, predicted), weights=weight))
        else:
            y.append(np.sqrt(np.average(np.square(predicted - truth), weights=weight)))
    return {
        "x": "trees" if engine.combine == "mean" else "rounds",
        "y": "log loss" if rows.classes else "RMSE",
        "series": [{"name": "rows of this report", "x": x, "y": rounded(y)}],
        "best": None,
        "note": f"Score after each round on this report's {len(sampled):,} rows, which were not "
        "used to choose the number of rounds.",
    }


def _thinned(length: int, most: int) -> Index:
    """At most `most` indices of a curve, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.intp))


def theory_section(rows: ModelRows) -> dict[str, Any] | None:
    """AdaBoost's training error with its bounds, and the margins of the rows."""
    model = rows.model
    votes = model.history.get("adaboost")
    if votes is None or votes["rounds"][-1] != model.n_rounds:  # or some of the rounds are left out
        return None
    sampled = sample_rows(rows.n_rows, _STAGED_ROWS)
    scores = model.raw(model.table(rows.table.sample(sampled)))
    values = margins(scores, rows.truth[sampled], votes["vote_range"])
    margin, share = margin_distribution(values)
    shown = _thinned(len(margin), _MOST_MARGINS)
    unknown = [None] * len(votes["rounds"])
    return {
        "kind": "adaboost",
        "rounds": votes["rounds"],
        "train_error": rounded(votes["training_error"] or unknown),
        "bound": rounded(votes["bound"] or unknown),
        "edge_bound": rounded(votes["edge_bound"] or unknown),
        "margins": {"x": rounded(margin[shown]), "cumulative": rounded(share[shown])},
        "note": "The bound is that of Freund and Schapire on the training error. The margin of a "
        "row is the share of the votes for its class less that for the strongest other class; "
        f"margins are those of {len(sampled):,} rows of this report.",
    }


def forest_section(rows: ModelRows) -> dict[str, Any] | None:
    """Out-of-bag error of a forest by its number of trees."""
    model = rows.model
    curve = model.history.get("out_of_bag")
    if curve is None or model.target_index >= len(curve["values"]):
        return None
    # A model of the first trees has the first part of the curve.
    n_points = sum(trees <= model.n_rounds for trees in curve["trees"])
    if n_points < _TWO:
        return None
    return {
        "oob": {
            "x": curve["trees"][:n_points],
            "y": rounded(curve["values"][model.target_index][:n_points]),
            "metric": _OUT_OF_BAG[curve["metric"]],
        },
        "note": "Each training row is predicted by the trees that have not drawn it.",
    }


def trees_section(rows: ModelRows, sample: Sample) -> dict[str, Any] | None:
    """First trees of a model as columns, as many as the page can carry."""
    engine = rows.model.engine
    if engine is None or not engine.n_trees:
        return None
    start = engine.forest.tree_start
    width = min(engine.forest.width, _MOST_WIDE)
    most = 4 * _MOST_NODES / (3 + width) / len(rows.inputs.model_rows)
    fits = (start[1:] <= most) & (np.diff(start) <= _LARGEST_NODE)
    n_shown = min(int(np.argmin(fits)) if not fits.all() else len(fits), _MOST_TREES)
    reason = None
    if not n_shown:
        reason = "The page carries no trees: they are too large."
    elif n_shown < engine.n_trees:
        reason = (
            f"The page carries {n_shown:,} of {engine.n_trees:,} trees: more would be too large."
        )
    forest = engine.forest.first(n_shown)
    split = forest.is_split
    value, unit = _values(rows.model, forest) if n_shown else (np.empty(0), None)
    used, index = np.unique(forest.feature[split], return_inverse=True)
    feature = np.full(forest.n_nodes, -1)
    feature[split] = index
    columns = {
        "start": forest.tree_start[:-1].tolist(),
        "names": [engine.schema.shown_names[i] for i in used.tolist()],
        "feature": feature.tolist(),
        "condition": conditions(engine, forest, _STYLE),
        "left": np.where(split, forest.left, -1).tolist(),
        "right": np.where(split, forest.left + 1, -1).tolist(),
        "value": rounded(value),
        "cover": rounded_counts(forest.cover),
        "gain": rounded(np.where(split, forest.gain, np.nan)),
        "missing": np.where(split, np.where(forest.default_left, 0, 1), 0).tolist(),
        "output": forest.output.tolist(),
        "leaves": _leaves(rows.model, sample, n_shown) if n_shown else "",
    }
    section = {"n": engine.n_trees, "shown": n_shown, "reason": reason, **columns}
    return section if unit is None else section | {"unit": unit}


def _values(model: ReportModel, forest: Any) -> tuple[Floats, str]:
    """Values of the nodes, and their meaning: of averaged trees, predictions."""
    assert model.engine is not None
    parts = node_values(model.engine, forest)
    part = parts[model.target_index if len(parts) > 1 else 0]
    value = part.numbers
    unit = "part of the raw score" if model.engine.combine == "sum" else "prediction of the tree"
    if part.is_share:
        unit = "class probabilities of the tree"
        if value.shape[1] == _TWO:
            value, unit = value[:, 1:], f"probability of {part.headers[1]} in the tree"
    # Sums that cancel leave rounding next to the largest leaf value: 0 for readers.
    value = np.where(np.abs(value) < _ROUNDING * np.abs(value).max(initial=0.0), 0.0, value)
    return value[:, 0] if value.shape[1] == 1 else value[:, :_MOST_WIDE], unit


def _leaves(model: ReportModel, sample: Sample, n_trees: int) -> str:
    """Leaves of the rows in the shown trees, row by row: 16 bits each, in base64."""
    leaves: NDArray[np.int32] = model.call("apply", model.table(sample))
    columns = leaves.reshape(len(sample), -1)  # of a single tree it is a vector
    shown = np.ascontiguousarray(columns[:, :n_trees].astype("<u2"))
    return base64.b64encode(shown.tobytes()).decode("ascii")
