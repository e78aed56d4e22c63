"""Effects of features: importances, SHAP values and partial dependence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.intervals import sample_rows
from arboost.report.data import column_bins, column_levels
from arboost.report.inputs import ModelRows, row_losses
from arboost.report.models import ChangedRows, Predictions, ReportModel
from arboost.report.table import Column, Floats, Index, Sample, rounded

_MOST_OUTPUTS = 10
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

_MOST_CURVES = 8  # of partial dependence
_CURVE_ROWS, _FEWEST_CURVE_ROWS = 500, 30
_CURVE_WORK = 4e8  # predicted rows x their cost, at most
_POINTS, _MOST_LEVELS = 24, 15
_SPREAD = (0.1, 0.9)  # quantiles of the curves of single rows
_ENDS = (0.01, 0.99)


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
    shap_of_rows : ShapOfRows or None
    notes : list of str
    """

    gain: Floats | None
    permutation: Floats | None
    permutation_sd: Floats | None
    shap: Floats | None
    order: Index
    shap_of_rows: ShapOfRows | None
    notes: list[str]


def feature_effects(rows: ModelRows) -> Effects:
    """Importances of a model on a sample of the rows."""
    engine = rows.model.engine
    gain = engine.importances("gain") if engine is not None and engine.n_trees else None
    shap_of_rows, notes = _shap_of_rows(rows)
    shap = None
    if shap_of_rows is not None:
        sizes = np.abs(shap_of_rows.values).sum(axis=2)
        shap = np.average(sizes, axis=0, weights=rows.weights(shap_of_rows.rows))
    permutation, spread, note = _permutation(rows, gain if shap is None else shap, gain)
    ranking = next((sizes for sizes in (shap, permutation, gain) if sizes is not None), None)
    order = np.arange(rows.model.schema.n_features)
    if ranking is not None:
        order = np.argsort(-np.nan_to_num(ranking, nan=-np.inf), kind="stable")
    return Effects(gain, permutation, spread, shap, order, shap_of_rows, [*notes, note])


def importances_section(rows: ModelRows, effects: Effects) -> list[dict[str, Any]]:
    """Importances of the payload, the most important feature first."""
    names = rows.model.schema.shown_names
    gain = effects.gain
    if gain is not None:
        total = float(gain.clip(min=0).sum())
        gain = gain / total if total else None
    columns = {
        "gain": gain,
        "permutation": effects.permutation,
        "permutation_sd": effects.permutation_sd,
        "shap": effects.shap,
    }
    return [
        {"feature": names[feature]}
        | {
            name: None if sizes is None else rounded(sizes[feature])
            for name, sizes in columns.items()
        }
        for feature in effects.order[:_MOST_LISTED].tolist()
    ]


# SHAP values


def shap_rows(rows: ModelRows) -> Index:
    """Rows whose SHAP values are computed: fewer for models of many nodes."""
    engine, most = rows.model.engine, _SHAP_ROWS
    if engine is not None:
        n_values = rows.model.schema.n_features * engine.n_outputs
        width = (3 + engine.forest.width) / 4
        by_nodes = _SHAP_WORK / max(engine.forest.n_nodes * width, 1)
        most = int(np.clip(min(by_nodes, _MOST_SHAP_VALUES / n_values), _FEWEST_SHAP_ROWS, most))
    return sample_rows(rows.n_rows, most)


def _shap_of_rows(rows: ModelRows) -> tuple[ShapOfRows | None, list[str]]:
    """SHAP values of some rows, and notes."""
    model, sample = rows.model, shap_rows(rows)
    values = model.shap(rows.table.sample(sample))
    if values is None:
        reason = "the model is not a sum of trees"
        if not model.is_whole:
            reason = "predictions are not those of the trees alone"
        return None, [f"SHAP values are left out: {reason}."]
    notes = [f"SHAP importances are means over {len(sample):,} rows."]
    if model.schema.offset is not None:
        notes.append("SHAP values add up to the raw score of a row without its offset.")
    return ShapOfRows(sample, *values), notes


def shap_section(rows: ModelRows, sample: Sample, effects: Effects) -> dict[str, Any] | None:
    """SHAP values of the sampled rows: of the top features, and of the rest together."""
    shap_of_rows = effects.shap_of_rows
    if shap_of_rows is None:
        return None
    # Samples are nested: the rows of the explorers are among those with SHAP values.
    values = shap_of_rows.values[np.searchsorted(shap_of_rows.rows, sample.rows)]
    outputs, names = _shown_outputs(rows, values.shape[2])
    top = effects.order[:_TOP]
    total = values[:, :, outputs].sum(axis=1)
    shown = values[:, top][:, :, outputs]
    base = shap_of_rows.base[outputs]
    return {
        "outputs": names,
        "base": rounded(base),
        "features": [rows.model.schema.shown_names[i] for i in top.tolist()],
        "values": rounded(shown.transpose(2, 1, 0)),
        "rest": rounded((total - shown.sum(axis=1)).T),
        "unit": _unit(rows, sample, total + base, outputs),
    }


def _unit(rows: ModelRows, sample: Sample, sums: Floats, outputs: Index) -> str:
    """Unit of SHAP values: most often, that of raw scores before the link."""
    engine, proba = rows.model.engine, rows.predicted.proba
    if engine is not None and engine.link == "logistic":
        return "log-odds"
    if rows.model.task == "regression":
        is_value = engine is None or engine.link in ("identity", "ordered")
        return rows.inputs.target or "prediction" if is_value else "raw score"
    if proba is None:
        return "raw score"
    of_outputs = proba[sample.rows][:, outputs if sums.shape[1] > 1 else -1].reshape(sums.shape)
    return "probability" if np.allclose(sums, of_outputs, atol=1e-6) else "raw score"


def _shown_outputs(rows: ModelRows, n_outputs: int) -> tuple[Index, list[str]]:
    """Outputs that the page shows, and their names; of many classes the largest."""
    labels = rows.classes
    if not labels:
        alphas = rows.model.alphas
        names = [rows.inputs.target or "prediction"]
        if n_outputs > 1:
            names = [f"output {i}" for i in range(n_outputs)]
            if alphas is not None and len(alphas) == n_outputs:
                names = [f"quantile {alpha:g}" for alpha in alphas]
        return np.arange(n_outputs)[:_MOST_OUTPUTS], names[:_MOST_OUTPUTS]
    if n_outputs == 1:
        return np.zeros(1, np.intp), [labels[-1]]
    largest = np.sort(np.argsort(-rows.class_totals(), kind="stable")[:_MOST_OUTPUTS])
    shown = largest[largest < n_outputs]
    return shown, [labels[i] for i in shown.tolist()]


# Permutation


def _permutation(
    rows: ModelRows, ranking: Floats | None, gain: Floats | None
) -> tuple[Floats | None, Floats | None, str]:
    """Mean increase of the loss when a feature is shuffled, its deviation, and a note."""
    model, n_features = rows.model, rows.model.schema.n_features
    # Shuffling a feature without a split changes nothing.
    candidates = np.arange(n_features) if gain is None else np.flatnonzero(gain > 0)
    if ranking is not None:
        candidates = candidates[np.argsort(-ranking[candidates], kind="stable")]
    features = candidates[:_MOST_SHUFFLED]
    mean = np.full(n_features, np.nan if gain is None else 0.0)
    mean[candidates] = np.nan
    spread = mean.copy()
    calls = max(len(features), 1) * _REPEATS
    by_trees = _SHUFFLED_WORK / (calls * model.row_work)
    by_cells = _MOST_SHUFFLED_CELLS / (calls * max(n_features, 1))
    most = int(np.clip(min(by_trees, by_cells), _FEWEST_SHUFFLED, _SHUFFLED_ROWS))
    sampled = sample_rows(rows.n_rows, most)
    n_rows = len(sampled)
    if n_rows < 2:  # noqa: PLR2004
        return None, None, "Permutation importances are left out: they need two rows."
    sample = rows.table.sample(sampled)
    weight, truth = rows.weights(sampled), rows.truth[sampled]
    start = _loss(model, truth, rows.predicted.take(sampled), weight)
    blocks = [_shuffled(sample, feature) for feature in features.tolist()]
    for feature, predicted in zip(features, model.predicted_blocks(sample, blocks), strict=True):
        losses = [
            _loss(model, truth, predicted.take(slice(first, first + n_rows)), weight)
            for first in range(0, _REPEATS * n_rows, n_rows)
        ]
        increases = np.array(losses) - start
        mean[feature], spread[feature] = increases.mean(), increases.std()
    note = (
        f"Permutation importances are increases of the "
        f"{'loss' if model.task == 'regression' else 'log loss'} on {n_rows:,} rows, means of "
        f"{_REPEATS} shuffles"
    )
    if len(features) == _MOST_SHUFFLED < n_features:
        note += f" of the {len(features):,} features that matter most"
    return mean, spread, note + "."


def _shuffled(sample: Sample, feature: int) -> ChangedRows:
    """Rows of a sample with the values of a feature shuffled, once for each repeat."""
    n_rows = len(sample)
    orders = [
        np.random.Generator(np.random.PCG64([0, feature, repeat])).permutation(n_rows)
        for repeat in range(_REPEATS)
    ]
    values = sample.columns[feature].numbers[np.concatenate(orders)]
    return ChangedRows(np.tile(np.arange(n_rows), _REPEATS), {feature: values})


def _loss(model: ReportModel, truth: NDArray[Any], predicted: Predictions, weight: Floats) -> float:
    """Log loss, share of wrong classes, or RMSE (pinball loss of quantiles)."""
    if predicted.values is not None and predicted.quantiles is None:
        squares = np.square(predicted.values - truth)
        return float(np.sqrt(np.average(squares, weights=weight)))
    return float(np.average(row_losses(model, truth, predicted)[0], weights=weight))


# Partial dependence


def dependence_section(rows: ModelRows, effects: Effects) -> tuple[list[dict[str, Any]], list[str]]:
    """Partial dependence of the top features, and the names of the outputs."""
    model, table = rows.model, rows.table
    features = effects.order[:_MOST_CURVES].tolist()
    most = _CURVE_WORK / (len(features) * _POINTS * model.row_work)
    sampled = sample_rows(rows.n_rows, int(np.clip(most, _FEWEST_CURVE_ROWS, _CURVE_ROWS)))
    sample, weight = table.sample(sampled), rows.weights(sampled)
    outputs, names = _curve_outputs(rows)
    grids = {feature: _grid(table.column(feature)) for feature in features}
    grids = {feature: grid for feature, grid in grids.items() if len(grid) > 1}
    every = np.arange(len(sample))
    blocks = [
        ChangedRows(np.repeat(every, len(grid)), {feature: np.tile(grid, len(sample))})
        for feature, grid in grids.items()
    ]
    sections = []
    predicted = model.predicted_blocks(sample, blocks)
    for (feature, grid), at_grid in zip(grids.items(), predicted, strict=True):
        curves = _curves(at_grid, outputs).reshape(len(sample), len(grid), -1)
        sections.append(_dependence(table.column(feature), grid, curves, weight))
    return sections, names


def _curve_outputs(rows: ModelRows) -> tuple[Index, list[str]]:
    """Outputs of a curve, and their names."""
    predicted = rows.predicted
    if predicted.quantiles is not None:
        return _shown_outputs(rows, predicted.quantiles.shape[1])
    if predicted.values is not None:
        return np.zeros(1, np.intp), [rows.inputs.target or "prediction"]
    if rows.model.task == "binary":
        return np.ones(1, np.intp), [rows.classes[1]]
    return _shown_outputs(rows, rows.n_classes)


def _grid(column: Column) -> Floats:
    """Points of a feature: its levels, or numbers between its outer percentiles."""
    present = column.numbers[np.isfinite(column.numbers)]
    if not len(present):
        return np.empty(0)
    distinct, totals = np.unique(present, return_counts=True)
    if column.has_levels:
        return distinct[np.argsort(-totals, kind="stable")[:_MOST_LEVELS]]
    if len(distinct) <= _POINTS:
        return distinct
    # Half of the points follow the data, half the range: steps are seen in both.
    shares = np.linspace(*_ENDS, _POINTS // 2)
    low, high = np.quantile(present, _ENDS)
    return np.unique(
        np.concatenate([np.quantile(present, shares), np.linspace(low, high, _POINTS // 2)])
    )


def _curves(predicted: Predictions, outputs: Index) -> Floats:
    """Predictions of each row as numbers, shape (n_rows, n_outputs)."""
    if predicted.quantiles is not None:
        return predicted.quantiles[:, outputs]
    if predicted.values is not None:
        return predicted.values[:, np.newaxis]
    if predicted.proba is not None:
        return predicted.proba[:, outputs]
    assert predicted.codes is not None
    votes: Floats = (predicted.codes[:, np.newaxis] == outputs).astype(np.float64)
    return votes


def _dependence(column: Column, grid: Floats, curves: Floats, weight: Floats) -> dict[str, Any]:
    low, high = np.quantile(curves, _SPREAD, axis=0)
    section: dict[str, Any] = {
        "feature": column.name,
        "kind": column.kind,
        "grid": rounded(grid, column.digits),
        "mean": rounded(np.average(curves, axis=0, weights=weight).T),
        "low": rounded(low.T),
        "high": rounded(high.T),
    }
    if column.unit:
        section["unit"] = column.unit
    if column.has_levels:
        section["grid"] = [column.text(code) for code in grid]
        section["levels"] = column_levels(column, None)
    else:
        section["bins"] = column_bins(column, None)
    return section
