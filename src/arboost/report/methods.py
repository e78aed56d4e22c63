"""The report as a method of models and estimators.

The implementation is imported when the method is called, so that loading a model stays light.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arboost.report.report import Report

__all__ = ["report"]


def report(  # noqa: PLR0913  # one call makes the whole page, and users name what they pass
    self: Any,
    X: object,
    y: object,
    *,
    path: str | os.PathLike[str] | None = None,
    sample_weight: object = None,
    offset: object = None,
    X_train: object = None,
    y_train: object = None,
    compare: object = None,
    segments: Sequence[str | int] | None = None,
    title: str | None = None,
    target_index: int | None = None,
    n_jobs: int | None = None,
) -> Report:
    """Return a report of the model on rows with known y: one page that needs no network.

    The page describes the data and the model; scores predictions next to a baseline, with
    confidence intervals, overall and for segments of the rows; and explains them: importances,
    SHAP values, partial dependence, single rows and single trees. Equal arguments give equal pages,
    but for date and timings.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        Held-out rows: scores of training rows are too good.
    y : array of shape (n_rows,), or the name of a column of X
        True values or labels. Rows with a missing y are left out.
    path : str or path-like, optional
        File to write the page to, as `Report.save` does.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows in scores and curves; rows of weight 0 are left out.
    offset : array, str or list of str, optional
        Offset of the rows, for a model that was fitted with one, as `predict` takes it; None for
        the columns that the fit named.
    X_train, y_train : table and array, or the name of a column of X_train, optional
        Training rows, for drift between training and test, for baselines, and for the out-of-bag
        curve of a forest.
    compare : Predictor, EnsemblePredictor or fitted estimator, optional
        Second model of the same target, shown next to the first on the same rows.
    segments : sequence of str or int, optional
        Features whose levels or ranges are scored as segments, in addition to the most important
        ones.
    title : str, optional
        Title of the page.
    target_index : int, optional
        Target to report on, of a model of several.
    n_jobs : int or None
        Number of threads, in place of that of an estimator; the report does not depend on it.

    Returns
    -------
    arboost.Report

    Examples
    --------
    >>> import arboost
    >>> X, y = [[0], [1], [2], [3]], [0.0, 1.0, 2.0, 3.0]
    >>> model = arboost.RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> sorted(model.report(X, y).scores)
    ['MAE', 'RMSE', 'R²']
    """
    from arboost.report.inputs import ReportOptions
    from arboost.report.report import report_of

    options = ReportOptions(
        sample_weight=sample_weight,
        offset=offset,
        X_train=X_train,
        y_train=y_train,
        compare=compare,
        segments=segments,
        title=title,
        target_index=target_index,
        n_jobs=n_jobs,
    )
    found = report_of(self, X, y, options)
    if path is not None:
        found.save(path)
    return found
