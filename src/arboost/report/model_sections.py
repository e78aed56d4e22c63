"""The model itself: facts and parameters, learning curves, and its trees."""

from __future__ import annotations

import base64
import platform
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.losses.curves import margin_distribution, margins
from arboost.losses.intervals import sample_rows
from arboost.losses.links import LINKS, predictions, probabilities
from arboost.models.model import Model
from arboost.params.kinds import Param
from arboost.plots.summary import PARAMETER_TABLES, Summary, value_text
from arboost.report.inputs import ReportInput
from arboost.report.models import ReportModel
from arboost.report.scores import log_losses
from arboost.report.table import Sample, level_text, rounded, rounded_counts
from arboost.text import number_text, printable, shortened, time_text
from arboost.trees.forest import Forest

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
        yield from Summary(cast(Any, model.engine)).facts.items()
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


Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_STAGES = 50  # of a curve that is computed here
_STAGED_ROWS = 3000
_STAGED_WORK = 3e6  # rows x trees, at most
_FEWEST_ROWS = 100
_MOST_MARGINS = 200
_TWO = 2
_OUT_OF_BAG = {"error": "error rate", "rmse": "RMSE"}


def learning_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the learning curves of a fit; of a model without any, scores after each round."""
    model = inputs.models[place]
    runs = model.history.get("runs")
    return _recorded(model, runs) if runs else _staged(inputs, place)


def _recorded(model: ReportModel, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metrics that a fit has recorded, by evaluation set."""
    metric = runs[0]["curves"][0]["metric"]
    series: list[dict[str, Any]] = []
    for run in runs:
        for curve in run["curves"]:
            if curve["metric"] != metric:
                continue
            y = rounded(_numbers(curve["values"]))
            series.append({"name": curve["set"], "x": run["rounds"], "y": y})
    return {
        "x": "rounds",
        "y": metric,
        "series": series,
        "best": runs[-1]["best"],
        "note": _recorded_note(model, runs),
    }


def _recorded_note(model: ReportModel, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence on recorded curves, whose rounds may be others than those of the model.

    A search for rounds counts its own, and continued training records those that it adds.
    """
    first, best = runs[0]["rounds"][0], runs[-1]["best"]
    note = "Recorded during the fit"
    if first > 1:
        note += f", which continued the training of {first - 1:,} rounds"
    if best is not None and best != model.n_rounds:
        note += f"; the model has {model.n_rounds:,} rounds"
    return f"{note}."


def _numbers(values: Sequence[float | None]) -> Floats:
    """Return numbers of a history as an array, with NaN for None."""
    return np.array(values, np.float64)


def _staged(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the score of the first rounds of a model on a sample of the rows."""
    model = inputs.models[place]
    engine = model.engine
    if engine is None or engine.n_rounds < _TWO or not model.is_whole:
        return None
    most = int(np.clip(_STAGED_WORK / engine.n_trees, _FEWEST_ROWS, _STAGED_ROWS))
    rows = sample_rows(inputs.n_rows, most)
    sample = inputs.tables[place].sample(rows)
    wanted = set((_thinned(engine.n_rounds, _STAGES) + 1).tolist())
    weight = None if inputs.weight is None else inputs.weight[rows]
    rate, name = _rating(model, inputs.truth[rows], weight)
    x, y = [], []
    for number, raw in enumerate(model.stages(sample), start=1):
        if number in wanted:
            x.append(number)
            y.append(rate(raw))
    series = [{"name": "rows of this report", "x": x, "y": rounded(y)}]
    return {
        "x": "trees" if engine.combine == "mean" else "rounds",
        "y": name,
        "series": series,
        "best": None,
        "note": f"Score after each round on this report's {len(rows):,} rows, which were not used "
        "to choose the number of rounds.",
    }


def _rating(model: ReportModel, truth: NDArray[Any], weight: Floats | None) -> tuple[Any, str]:
    """Return the loss of raw scores, and its name."""
    engine = model.engine
    assert engine is not None

    def of_classes(raw: Floats) -> float:
        proba = probabilities(engine, raw)
        own = proba[model.target_index] if isinstance(proba, list) else proba
        return float(np.average(log_losses(truth, own), weights=weight))

    def of_values(raw: Floats) -> float:
        values = np.asarray(predictions(engine, raw), np.float64)
        if values.ndim > 1:
            values = values[:, model.value_column]
        return float(np.sqrt(np.average(np.square(values - truth), weights=weight)))

    return (of_classes, "log loss") if model.classes is not None else (of_values, "RMSE")


def _thinned(length: int, most: int) -> Index:
    """Return at most so many of the indices, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.intp))


def theory_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return AdaBoost's training error with its bounds, and the margins of the rows."""
    model = inputs.models[place]
    votes = model.history.get("adaboost")
    if votes is None or votes["rounds"][-1] != model.n_rounds:  # or some of the rounds are left out
        return None
    rows = sample_rows(inputs.n_rows, _STAGED_ROWS)
    scores = model.raw(model.table(inputs.tables[place].sample(rows)))
    values = margins(scores, inputs.truth[rows], votes["vote_range"])
    margin, share = margin_distribution(values)
    some = _thinned(len(margin), _MOST_MARGINS)
    unknown = [None] * len(votes["rounds"])
    series = {
        name: rounded(_numbers(votes[name] or unknown))
        for name in ("training_error", "bound", "edge_bound")
    }
    return {
        "kind": "adaboost",
        "rounds": votes["rounds"],
        "train_error": series["training_error"],
        "bound": series["bound"],
        "edge_bound": series["edge_bound"],
        "margins": {"x": rounded(margin[some]), "cumulative": rounded(share[some])},
        "note": "The bound is that of Freund and Schapire on the training error. The margin of a "
        "row is the share of the votes for its class less that for the strongest other class; "
        f"margins are those of {len(rows):,} rows of this report.",
    }


def forest_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return the out-of-bag error of a forest by its number of trees."""
    model = inputs.models[place]
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
            "y": rounded(_numbers(curve["values"][model.target_index][:n_points])),
            "metric": _OUT_OF_BAG[curve["metric"]],
        },
        "note": "Each training row is predicted by the trees that have not drawn it.",
    }


_MOST_NODES = 30_000  # of all models of a page; fewer where leaves hold several values
_MOST_TREES = 500
_MOST_WIDE = 10  # values of a leaf of several outputs
_LARGEST_NODE = 65_535  # of 16 bits
_MAX_NAME = 40  # characters of a level
_MOST_LEVELS = 8  # that are listed by name
_DIGITS = 5
_ROUNDING = 2.0**-24  # of float32, in which tables often are


def trees_section(model: ReportModel, sample: Sample, n_models: int) -> dict[str, Any] | None:
    """Return the first trees of a model, as many as a page of so many models can carry."""
    engine = model.engine
    if engine is None or not engine.n_trees:
        return None
    start = engine.forest.tree_start
    width = min(engine.forest.width, _MOST_WIDE)
    most = 4 * _MOST_NODES / (3 + width) / n_models
    fits = (start[1:] <= most) & (np.diff(start) <= _LARGEST_NODE)
    n_shown = min(int(np.argmin(fits)) if not fits.all() else len(fits), _MOST_TREES)
    reason = None
    if n_shown < engine.n_trees:
        reason = (
            f"The page carries {n_shown:,} of {engine.n_trees:,} trees: more would be too large."
        )
    if not n_shown:
        return _empty(engine, "The page carries no trees: they are too large.")
    forest = engine.forest.first(n_shown)
    split = forest.is_split
    value, unit = _values(engine, forest)
    return {
        "n": engine.n_trees,
        "shown": n_shown,
        "reason": reason,
        "start": forest.tree_start[:-1].tolist(),
        **_named(engine, forest),
        "condition": conditions(engine, forest),
        "left": np.where(split, forest.left, -1).tolist(),
        "right": np.where(split, forest.left + 1, -1).tolist(),
        "value": rounded(value),
        "unit": unit,
        "cover": rounded_counts(forest.cover),
        "gain": rounded(np.where(split, forest.gain, np.nan)),
        "missing": np.where(split, np.where(forest.default_left, 0, 1), 0).tolist(),
        "output": forest.output.tolist(),
        "leaves": _leaves(model, sample, n_shown),
    }


def _empty(engine: Model, reason: str) -> dict[str, Any]:
    lists = ("start", "names", "feature", "condition", "left", "right", "value", "cover", "gain")
    found: dict[str, Any] = {name: [] for name in (*lists, "missing", "output")}
    return found | {"n": engine.n_trees, "shown": 0, "reason": reason, "leaves": ""}


def _values(engine: Model, forest: Forest) -> tuple[NDArray[np.float64], str]:
    """Return the values of the nodes, and their meaning: of averaged trees, predictions."""
    value = forest.value
    unit = "part of the raw score" if engine.combine == "sum" else "prediction of the tree"
    if engine.combine == "mean":
        value = value + (engine.base_score if value.shape[1] > 1 else engine.base_score[:1])
        if engine.kind == "classifier" and not engine.targets:
            value = LINKS[engine.link](value)
            unit = "class probabilities of the tree"
            if engine.link == "share_of_two":
                value, unit = value[:, 1:], f"probability of {engine.classes[1]} in the tree"
    # Sums that cancel leave rounding next to the largest leaf value: 0 for readers.
    value = np.where(np.abs(value) < _ROUNDING * np.abs(value).max(initial=0.0), 0.0, value)
    return value[:, 0] if value.shape[1] == 1 else value[:, :_MOST_WIDE], unit


def _named(engine: Model, forest: Forest) -> dict[str, Any]:
    """Return the features of the splits, as indices of the names that occur."""
    split = forest.is_split
    used, index = np.unique(forest.feature[split], return_inverse=True)
    feature = np.full(forest.n_nodes, -1)
    feature[split] = index
    names = engine.schema.shown_names
    return {"names": [names[i] for i in used.tolist()], "feature": feature.tolist()}


def conditions(engine: Model, forest: Forest) -> list[str]:
    """Return the condition of each split, without the name of the feature; "" for leaves.

    Rows that meet it go left.
    """
    words = _Conditions(engine, forest)
    return [
        words.of(node) if is_split else "" for node, is_split in enumerate(forest.is_split.tolist())
    ]


class _Conditions:
    """Conditions of the splits of a forest as text; equal ones are written once."""

    def __init__(self, engine: Model, forest: Forest) -> None:
        self._schema, self._forest = engine.schema, forest
        self._known: dict[tuple[int, object], str] = {}
        # Thresholds that are rounding next to the largest of a feature are shown as 0.
        self._scale = np.zeros(engine.schema.n_features)
        cut = forest.is_split & (forest.level_set < 0) & np.isfinite(forest.threshold)
        np.maximum.at(self._scale, forest.feature[cut], np.abs(forest.threshold[cut]))

    def of(self, node: int) -> str:
        """Return the condition of a split."""
        forest = self._forest
        feature, number = int(forest.feature[node]), int(forest.level_set[node])
        key: object = float(forest.threshold[node])
        if number >= 0:
            key = forest.level_sets[number].tobytes()
        place = (feature, (key, bool(forest.default_left[node])))
        if place not in self._known:
            self._known[place] = (
                self._of_number(feature, node) if number < 0 else self._of_set(feature, node)
            )
        return self._known[place]

    def _of_number(self, feature: int, node: int) -> str:
        threshold = float(self._forest.threshold[node])
        if np.isinf(threshold):
            return "is known" if threshold > 0 else "is missing"
        levels, unit = self._schema.levels_of(feature), self._schema.unit_of(feature)
        if unit:
            return f"<= {time_text(threshold, unit)}"
        if levels is not None and levels.ranks is not None:
            last = level_text(levels.label_at_most(threshold))
            return f"<= {shortened(printable(last), _MAX_NAME)}"
        is_rounding = abs(threshold) < _ROUNDING * self._scale[feature]
        number = number_text(0.0 if is_rounding else threshold, _DIGITS)
        is_mean = levels is not None and levels.statistic is not None
        return f"{'has a target mean ' if is_mean else ''}<= {number}"

    def _of_set(self, feature: int, node: int) -> str:
        forest = self._forest
        levels = self._schema.levels_of(feature)
        assert levels is not None
        is_left = levels.in_set(forest.level_sets[forest.level_set[node]])
        goes_left = bool(forest.default_left[node])
        if len(is_left) and (is_left != goes_left).all():  # missing values alone on one side
            return "is missing" if goes_left else "is known"
        codes = np.flatnonzero(is_left & levels.in_training)
        names = [level_text(levels.label(code)) for code in codes[:_MOST_LEVELS].tolist()]
        shown = [shortened(printable(name), _MAX_NAME) for name in names]
        if len(codes) == 1:
            return f"is {shown[0]}"
        more = [f"{len(codes) - _MOST_LEVELS} more"] if len(codes) > _MOST_LEVELS else []
        return f"in {{{', '.join(shown + more)}}}"


def _leaves(model: ReportModel, sample: Sample, n_trees: int) -> str:
    """Return the leaves of the rows in the shown trees, row by row: 16 bits each, in base64."""
    found: NDArray[np.int32] = model.call("apply", model.table(sample))
    leaves = found.reshape(len(sample), -1)  # of a single tree it is a vector
    shown = np.ascontiguousarray(leaves[:, :n_trees].astype("<u2"))
    return base64.b64encode(shown.tobytes()).decode("ascii")
