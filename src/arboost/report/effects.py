"""Effects of features: importances, SHAP values and partial dependence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.intervals import sample_rows
from arboost.report.data import column_bins, column_levels
from arboost.report.inputs import ReportInput
from arboost.report.models import ChangedRows, Predictions, ReportModel
from arboost.report.scores import log_losses, pinball
from arboost.report.table import MORE_DIGITS, Column, Sample, rounded, rounded_number, shown_level

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

MOST_OUTPUTS = 10
_MOST_LISTED = 200
_TOP = 20
_REPEATS = 5
_SHAP_ROWS, _FEWEST_SHAP_ROWS = 2000, 30
_SHAP_WORK = 5e8  # rows x nodes, at most
_MOST_SHAP_VALUES = 5e7
_SHUFFLED_ROWS, _FEWEST_SHUFFLED = 2000, 100
_SHUFFLED_WORK = 1e9  # predicted rows x their cost, at most
_MOST_SHUFFLED = 100  # features
_MOST_SHUFFLED_CELLS = 2e8


@dataclass(frozen=True, eq=False)
class ShapOfRows:
    """SHAP values of some rows.

    Attributes
    ----------
    rows : int array of shape (n_rows,)
        Row numbers, ascending.
    values : float64 array of shape (n_rows, n_features, n_outputs)
    base : float64 array of shape (n_outputs,)
    """

    rows: Index
    values: Floats
    base: Floats


@dataclass(frozen=True, eq=False)
class Effects:
    """Importances of all features of a model.

    Attributes
    ----------
    gain, permutation, permutation_sd, shap : float64 array of shape (n_features,), or None
        NaN where a feature was not looked at.
    order : int array
        Features, the most important first.
    of_rows : ShapOfRows or None
    notes : list of str
    """

    gain: Floats | None
    permutation: Floats | None
    permutation_sd: Floats | None
    shap: Floats | None
    order: Index
    of_rows: ShapOfRows | None
    notes: list[str]


def effects_of(inputs: ReportInput, place: int) -> Effects:
    """Return the importances of a model on a sample of the rows."""
    model, notes = inputs.models[place], []
    gain = None
    if model.engine is not None and model.engine.n_trees:
        gain = np.asarray(model.engine_importances(), np.float64)
    of_rows, note = _shap_of(inputs, place)
    notes += note
    shap = None if of_rows is None else _mean_shap(inputs, of_rows)
    first = shap if shap is not None else gain
    permutation, spread, note = _permuted(inputs, place, first, gain)
    notes += note
    ranking = shap if shap is not None else permutation if permutation is not None else gain
    n_features = model.schema.n_features
    order = np.arange(n_features)
    if ranking is not None:
        order = np.argsort(-np.nan_to_num(ranking, nan=-np.inf), kind="stable")
    return Effects(gain, permutation, spread, shap, order, of_rows, notes)


def importances_section(inputs: ReportInput, place: int, effects: Effects) -> list[dict[str, Any]]:
    """Return the importances of the payload, the most important feature first."""
    names = inputs.models[place].schema.shown_names
    total = None if effects.gain is None else float(effects.gain.clip(min=0).sum())

    def value(array: Floats | None, feature: int) -> float | int | None:
        return None if array is None else rounded_number(float(array[feature]))

    found = []
    for feature in effects.order[:_MOST_LISTED].tolist():
        gain = None
        if effects.gain is not None and total:
            gain = rounded_number(float(effects.gain[feature]) / total)
        found.append(
            {
                "feature": names[feature],
                "gain": gain,
                "permutation": value(effects.permutation, feature),
                "permutation_sd": value(effects.permutation_sd, feature),
                "shap": value(effects.shap, feature),
            }
        )
    return found


def shap_rows(inputs: ReportInput, place: int) -> Index:
    """Return the rows whose SHAP values are computed: fewer for models of many nodes."""
    model, most = inputs.models[place], _SHAP_ROWS
    if model.engine is not None:
        values = model.schema.n_features * model.engine.n_outputs
        width = (3 + model.engine.forest.width) / 4
        by_nodes = _SHAP_WORK / max(model.engine.forest.n_nodes * width, 1)
        most = int(np.clip(min(by_nodes, _MOST_SHAP_VALUES / values), _FEWEST_SHAP_ROWS, most))
    return sample_rows(inputs.n_rows, most)


def _shap_of(inputs: ReportInput, place: int) -> tuple[ShapOfRows | None, list[str]]:
    """Return the SHAP values of some rows, and notes."""
    model = inputs.models[place]
    rows = shap_rows(inputs, place)
    found = model.shap(inputs.tables[place].sample(rows))
    if found is None:
        reason = "the model is no sum of trees"
        if not model.is_whole:
            reason = "predictions are not those of the trees alone"
        return None, [f"SHAP values are left out: {reason}."]
    notes = [f"SHAP importances are means over {len(rows):,} rows."]
    if model.schema.offset is not None:
        notes.append("SHAP values add up to the raw score of a row without its offset.")
    return ShapOfRows(rows, *found), notes


def _mean_shap(inputs: ReportInput, found: ShapOfRows) -> Floats:
    """Return the mean absolute SHAP value of each feature."""
    sizes = np.abs(found.values).sum(axis=2)
    weight = None if inputs.weight is None else inputs.weight[found.rows]
    mean: Floats = np.average(sizes, axis=0, weights=weight)
    return mean


def _permuted(
    inputs: ReportInput, place: int, ranking: Floats | None, gain: Floats | None
) -> tuple[Floats | None, Floats | None, list[str]]:
    """Return the mean increase of the loss when a feature is shuffled, its deviation, and notes."""
    model, table = inputs.models[place], inputs.tables[place]
    n_features = model.schema.n_features
    features = np.arange(n_features)
    if gain is not None:  # shuffling a feature without a split changes nothing
        features = np.flatnonzero(gain > 0)
    if ranking is not None:
        features = features[np.argsort(-ranking[features], kind="stable")]
    features = features[:_MOST_SHUFFLED]
    rows = sample_rows(inputs.n_rows, _shuffled_rows(model, len(features)))
    mean = np.zeros(n_features) if gain is not None else np.full(n_features, np.nan)
    spread = mean.copy()
    if gain is not None and ranking is not None:
        mean[np.setdiff1d(np.flatnonzero(gain > 0), features)] = np.nan
        spread[np.isnan(mean)] = np.nan
    if len(rows) < 2:  # noqa: PLR2004
        return None, None, ["Permutation importances are left out: they need two rows."]
    sample = table.sample(rows)
    weight = None if inputs.weight is None else inputs.weight[rows]
    truth = inputs.truth[rows]
    start = _loss(model, truth, inputs.predicted[place].take(rows), weight)
    blocks = [_shuffled(sample, feature) for feature in features.tolist()]
    for feature, predicted in zip(features, model.predicted_blocks(sample, blocks), strict=True):
        parts = [predicted.take(slice(i * len(rows), (i + 1) * len(rows))) for i in range(_REPEATS)]
        increases = np.array([_loss(model, truth, part, weight) for part in parts]) - start
        mean[feature], spread[feature] = increases.mean(), increases.std()
    name = "log loss" if model.task != "regression" else "loss"
    note = (
        f"Permutation importances are increases of the {name} on {len(rows):,} rows, means of "
        f"{_REPEATS} shuffles"
    )
    if len(features) == _MOST_SHUFFLED < n_features:
        note += f" of the {len(features):,} features that matter most"
    return mean, spread, [note + "."]


def _shuffled_rows(model: ReportModel, n_features: int) -> int:
    calls = max(n_features, 1) * _REPEATS
    by_trees = _SHUFFLED_WORK / (calls * model.row_work)
    by_cells = _MOST_SHUFFLED_CELLS / (calls * max(model.schema.n_features, 1))
    return int(np.clip(min(by_trees, by_cells), _FEWEST_SHUFFLED, _SHUFFLED_ROWS))


def _shuffled(sample: Sample, feature: int) -> ChangedRows:
    """Return the rows of a sample with the values of a feature shuffled, once for each repeat."""
    n_rows = len(sample)
    orders = [
        np.random.Generator(np.random.PCG64([0, feature, repeat])).permutation(n_rows)
        for repeat in range(_REPEATS)
    ]
    values = sample.columns[feature].numbers[np.concatenate(orders)]
    return ChangedRows(np.tile(np.arange(n_rows), _REPEATS), {feature: values})


def _loss(
    model: ReportModel, truth: NDArray[Any], predicted: Predictions, weight: Floats | None
) -> float:
    """Return the log loss, the share of wrong classes, or the RMSE (pinball loss of quantiles)."""
    if predicted.codes is not None:
        if predicted.proba is not None:
            return float(np.average(log_losses(truth, predicted.proba), weights=weight))
        return float(np.average(predicted.codes != truth, weights=weight))
    assert predicted.values is not None
    alphas = model.alphas
    if predicted.quantiles is not None and alphas is not None:
        return float(np.average(pinball(truth, predicted.quantiles, alphas), weights=weight))
    return float(np.sqrt(np.average(np.square(predicted.values - truth), weights=weight)))


def chosen_outputs(inputs: ReportInput, place: int, n_outputs: int) -> tuple[Index, list[str]]:
    """Return the outputs that the page shows, and their names; of many classes the largest."""
    classes = inputs.classes
    if classes is None:
        alphas = inputs.models[place].alphas
        names = [inputs.target or "prediction"]
        if n_outputs > 1:
            names = [f"output {i}" for i in range(n_outputs)]
            if alphas is not None and len(alphas) == n_outputs:
                names = [f"quantile {alpha:g}" for alpha in alphas]
        return np.arange(n_outputs)[:MOST_OUTPUTS], names[:MOST_OUTPUTS]
    labels = [str(label) for label in classes.tolist()]
    if n_outputs == 1:
        return np.zeros(1, np.intp), [labels[-1]]
    counts = np.bincount(inputs.truth, inputs.weight, minlength=len(labels))
    largest = np.sort(np.argsort(-counts, kind="stable")[:MOST_OUTPUTS])
    chosen = largest[largest < n_outputs]
    return chosen, [labels[i] for i in chosen.tolist()]


def shap_section(
    inputs: ReportInput, place: int, sample: Sample, effects: Effects
) -> dict[str, Any] | None:
    """Return the SHAP values of the sampled rows: of the top features, and of the rest together."""
    found = effects.of_rows
    if found is None:
        return None
    # Samples are nested: the rows of the explorers are among those with SHAP values.
    values, base = found.values[np.searchsorted(found.rows, sample.rows)], found.base
    outputs, names = chosen_outputs(inputs, place, values.shape[2])
    top = effects.order[:_TOP]
    total = values[:, :, outputs].sum(axis=1)
    shown = values[:, top][:, :, outputs]
    return {
        "outputs": names,
        "base": rounded(base[outputs]),
        "features": [inputs.models[place].schema.shown_names[i] for i in top.tolist()],
        "values": rounded(shown.transpose(2, 1, 0)),
        "rest": rounded((total - shown.sum(axis=1)).T),
        "unit": _unit(inputs, place, sample, total + base[outputs], outputs),
    }


def _unit(inputs: ReportInput, place: int, sample: Sample, sums: Floats, outputs: Index) -> str:
    """Return the unit of SHAP values: most often, that of raw scores before the link."""
    engine, proba = inputs.models[place].engine, inputs.predicted[place].proba
    if engine is not None and engine.link == "logistic":
        return "log-odds"
    if inputs.classes is None:
        is_value = engine is None or engine.link in ("identity", "ordered")
        return inputs.target or "prediction" if is_value else "raw score"
    if proba is None:
        return "raw score"
    of_outputs = proba[sample.rows][:, outputs if sums.shape[1] > 1 else -1].reshape(sums.shape)
    return "probability" if np.allclose(sums, of_outputs, atol=1e-6) else "raw score"


_MOST_FEATURES = 8
_ROWS, _FEWEST_ROWS = 500, 30
_WORK = 4e8  # predicted rows x their cost, at most
_POINTS, _MOST_LEVELS = 24, 15
_SPREAD = (0.1, 0.9)  # quantiles of the curves of single rows
_ENDS = (0.01, 0.99)


def dependence_section(
    inputs: ReportInput, place: int, effects: Effects
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the partial dependence of the top features, and the names of the outputs."""
    model, table = inputs.models[place], inputs.tables[place]
    features = effects.order[:_MOST_FEATURES].tolist()
    most = _WORK / (len(features) * _POINTS * model.row_work)
    rows = sample_rows(inputs.n_rows, int(np.clip(most, _FEWEST_ROWS, _ROWS)))
    sample = table.sample(rows)
    weight = None if inputs.weight is None else inputs.weight[rows]
    chosen, names = _outputs(inputs, place)
    grids = {feature: _grid(table.column(feature)) for feature in features}
    grids = {feature: grid for feature, grid in grids.items() if len(grid) > 1}
    every = np.arange(len(sample))
    blocks = [
        ChangedRows(np.repeat(every, len(grid)), {feature: np.tile(grid, len(sample))})
        for feature, grid in grids.items()
    ]
    found = []
    predicted = model.predicted_blocks(sample, blocks)
    for (feature, grid), own in zip(grids.items(), predicted, strict=True):
        curves = _curves(own, chosen).reshape(len(sample), len(grid), -1)
        found.append(_section(table.column(feature), grid, curves, weight))
    return found, names


def _outputs(inputs: ReportInput, place: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the outputs of a curve, and their names."""
    predicted = inputs.predicted[place]
    if predicted.values is not None:
        if predicted.quantiles is not None:
            return chosen_outputs(inputs, place, predicted.quantiles.shape[1])
        return np.zeros(1, np.intp), [inputs.target or "prediction"]
    assert inputs.classes is not None
    if inputs.task == "binary":
        return np.ones(1, np.intp), [str(inputs.classes[1])]
    return chosen_outputs(inputs, place, len(inputs.classes))


def _grid(column: Column) -> Floats:
    """Return the points of a feature: its levels, or numbers between its outer percentiles."""
    present = column.numbers[np.isfinite(column.numbers)]
    if not len(present):
        return np.empty(0)
    if column.kind in ("category", "bool"):
        codes, totals = np.unique(present, return_counts=True)
        largest = np.argsort(-totals, kind="stable")[:_MOST_LEVELS]
        return codes[largest]
    distinct = np.unique(present)
    if len(distinct) <= _POINTS:
        return distinct
    # Half of the points follow the data, half the range: steps are seen in both.
    shares = np.linspace(*_ENDS, _POINTS // 2)
    low, high = np.quantile(present, _ENDS)
    return np.unique(
        np.concatenate([np.quantile(present, shares), np.linspace(low, high, _POINTS // 2)])
    )


def _curves(predicted: Predictions, chosen: NDArray[np.intp]) -> Floats:
    """Return the predictions of each row as numbers, shape (n_rows, n_outputs)."""
    if predicted.quantiles is not None:
        return predicted.quantiles[:, chosen]
    if predicted.values is not None:
        return predicted.values[:, np.newaxis]
    if predicted.proba is not None:
        return predicted.proba[:, chosen]
    assert predicted.codes is not None
    votes: Floats = (predicted.codes[:, np.newaxis] == chosen).astype(np.float64)
    return votes


def _section(column: Column, grid: Floats, curves: Floats, weight: Floats | None) -> dict[str, Any]:
    low, high = np.quantile(curves, _SPREAD, axis=0)
    digits = 15 if column.kind == "time" else MORE_DIGITS
    found: dict[str, Any] = {
        "feature": column.name,
        "kind": column.kind,
        "grid": rounded(grid, digits),
        "mean": rounded(np.average(curves, axis=0, weights=weight).T),
        "low": rounded(low.T),
        "high": rounded(high.T),
    }
    if column.unit:
        found["unit"] = column.unit
    if column.kind in ("category", "bool"):
        labels = ("False", "True") if column.kind == "bool" else column.labels
        found["grid"] = [shown_level(labels[int(code)]) for code in grid]
        levels = column_levels(column, None)
        found["levels"] = {"names": levels["names"], "counts": levels["test"]}
        return found
    bins = column_bins(column, None)
    found["bins"] = None if bins is None else {"edges": bins["edges"], "counts": bins["test"]}
    return found
