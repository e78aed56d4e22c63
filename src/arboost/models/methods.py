"""Methods of fitted models that import their implementation when they are called.

Loading and running a model stays light: explanations, pictures, exports and reports are imported
on first use. `EstimatorMethods` are those that loaded models of any kind share with estimators of
scikit-learn, `ModelMethods` those of one model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads
from arboost.data.feature_names import split_target
from arboost.data.target import weights
from arboost.errors import InputTypeError
from arboost.losses.links import SHARE_LINKS, decision
from arboost.losses.ranking import refuse_ranker
from arboost.models.model import Model
from arboost.params.suggestions import missing_attribute
from arboost.trees.forest import Floats
from arboost.write import write_file

if TYPE_CHECKING:
    from arboost.models.monotone import MonotoneProof
    from arboost.models.partial_dependence import Grid, PartialDependence
    from arboost.plots.summary import Summary
    from arboost.plots.trees import TreePicture
    from arboost.report.evaluation import Evaluation
    from arboost.report.report import Report


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
    """Report of the model on rows with known y: one page that needs no network.

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
    refuse_ranker(getattr(self, "model_", self), "report")
    from arboost.report.report import make_report

    page = make_report(
        self,
        X,
        y,
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
    if path is not None:
        page.save(path)
    return page


def evaluate(  # noqa: PLR0913 - most have defaults
    self: Any,
    X: object,
    y: object,
    *,
    sample_weight: object = None,
    offset: object = None,
    qid: object = None,
    metrics: str | Sequence[str] = (),
    target_index: int | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Score the model on rows with known y: values, 95 % intervals, a baseline, and each class.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        Held-out rows: scores of training rows are too good.
    y : array of shape (n_rows,), or the name of a column of X
        True values or labels. Rows with a missing y are left out.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; rows of weight 0 are left out.
    offset : array, str or list of str, optional
        Offset of the rows, for a model that was fitted with one, as `predict` takes it; None for
        the columns that the fit named.
    qid : array of shape (n_rows,), optional
        Query of each row, for a ranker: its scores are NDCG, MAP and MRR, means over queries. Or
        the name of a column of X.
    metrics : str or sequence of str, optional
        Names of metrics in addition to those of the report.
    target_index : int, optional
        Target to score, of a model of several.
    n_jobs : int or None
        Number of threads, in place of that of an estimator; scores do not depend on it.

    Returns
    -------
    arboost.Evaluation

    Examples
    --------
    >>> import arboost
    >>> X, y = [[0], [1], [2], [3]], [0.0, 1.0, 2.0, 3.0]
    >>> model = arboost.DecisionTreeRegressor().fit(X, y)
    >>> model.evaluate(X, y)
    Scores on 4 rows; the baseline always predicts the mean
      RMSE  0  1.118
      MAE   0  1
      R²    1  0
    """
    from arboost.report.evaluation import evaluate_model, evaluate_ranking
    from arboost.report.inputs import ReportOptions

    options = ReportOptions(
        sample_weight=sample_weight, offset=offset, target_index=target_index, n_jobs=n_jobs
    )
    kind = getattr(getattr(self, "model_", self), "kind", getattr(self, "_KIND", ""))
    if (kind == "ranker") != (qid is not None):
        raise ValueError(
            "qid is None, but a ranker is scored query by query. Pass the query of each row."
            if qid is None
            else f"qid is for rankers, but this is a {kind}. Leave it out."
        )
    if qid is not None:
        return evaluate_ranking(self, X, y, qid, options, metrics)
    return evaluate_model(self, X, y, options, metrics)


class EstimatorMethods:
    """Attributes and methods of fitted estimators of scikit-learn, for loaded models.

    They need ``kind``, ``classes``, ``schema`` and ``predict``.
    """

    evaluate = evaluate
    report = report

    if not TYPE_CHECKING:  # for type checkers, unknown names are errors
        __getattr__ = missing_attribute

    @property
    def classes_(self: Any) -> Any:
        """Class labels, as estimators have them; AttributeError for regression."""
        if self.classes is None:
            raise AttributeError("classes_ is there for classifiers only, but this is a regressor.")
        return list(self.classes) if isinstance(self.classes, tuple) else self.classes

    @property
    def n_features_in_(self: Any) -> int:
        """Number of columns of the table in fit."""
        count: int = self.schema.n_columns
        return count

    @property
    def feature_names_in_(self: Any) -> NDArray[Any]:
        """Names of the columns in fit; AttributeError for a table without names."""
        if self.schema.columns is None:
            raise AttributeError("feature_names_in_ is not there: the table of fit had no names.")
        return np.array(self.schema.columns, dtype=object)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> float:
        """Accuracy of the labels, or R^2 of the values, as `score` of estimators.

        y may name a column of X; `options` are those of `predict`.
        """
        refuse_ranker(self, "score of a model without its estimator")
        features, y, _ = split_target(X, y)
        predicted = self.predict(X if options.get("offset") else features, **options)
        truth = np.asarray(y).reshape(predicted.shape)
        weight = weights(sample_weight, len(predicted))
        if self.kind == "classifier":
            is_right = (predicted == truth).reshape(len(truth), -1).all(axis=1)
            return float(np.average(is_right, weights=weight))
        from arboost.losses.metrics import VALUE_METRICS

        r2 = VALUE_METRICS["r2"].function
        truths, predictions = (
            np.asarray(values, float).reshape(len(y), -1).T for values in (truth, predicted)
        )
        pairs = zip(truths, predictions, strict=True)
        return float(np.mean([r2(y, values, weight) for y, values in pairs]))

    def decision_function(self: Any, X: object, **options: Any) -> Floats:
        """Raw scores of a classifier, as `decision_function` of estimators.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes); `options` are those of
        `predict_raw`. Forests and trees have probabilities alone.
        """
        if self.kind != "classifier" or self.link in SHARE_LINKS:
            raise InputTypeError(
                "decision_function is there for boosted classifiers only. Use predict, or "
                "predict_proba of a classifier."
            )
        return decision(self.predict_raw(X, **options))

    def predict_files(  # noqa: PLR0913 - most have defaults
        self: Any,
        source: object,
        path: str | os.PathLike[str],
        *,
        columns_to_keep: Sequence[str] | None = None,
        method: str = "predict",
        offset: str | Sequence[str] | float | None = None,
        batch_rows: int = 131_072,
        n_jobs: int | None = None,
        format: str | None = None,  # noqa: A002  # as in `TableFiles`
        escape_formulas: bool = False,
    ) -> int:
        """Write the predictions of rows that need not fit in memory; needs the package pyarrow.

        The values are those of `predict` on the whole table, in the order of the rows. The file
        gets its name when it is complete: an error leaves the file that was there before.

        Parameters
        ----------
        source : path, pattern, folder, list of them, dataset, query or iterable
            Rows to predict, as `Dataset.from_files` takes them; also a generator of tables. Of
            files, only the features and `columns_to_keep` are read.
        path : str or path-like
            File to write, of Parquet (.parquet), Arrow (.arrow, .feather), CSV (.csv, .tsv) or JSON
            lines (.jsonl), the latter two also with .gz or .zst.
        columns_to_keep : list of str, optional
            Columns to copy, before the predictions; categories become plain values.
        method : {"predict", "predict_proba", "predict_raw", "shap_values"}, default="predict"
            "predict" writes a column "prediction"; "predict_proba" writes "proba_<class>" for each
            class; "predict_raw" writes "raw". Several outputs have a number in the name:
            "prediction_0", "raw_0", "proba_0_<class>" and so on. "shap_values" writes a column for
            each feature, and "expected_value"; of several outputs, followed by the class.
            Ensembles of models have no raw scores.
        offset : str, list of str, float or None, default=None
            Columns with the offset of the rows, or one number for all, for a model that was fitted
            with an offset; None for the columns that the fit named.
        batch_rows : int, default=131072
            Largest number of rows in memory at a time; two batches are.
        n_jobs : int or None
            Number of threads; predictions do not depend on it.
        format : {"csv", "tsv", "parquet", "arrow", "jsonl"}, optional
            Format of the file, if its name does not show it.
        escape_formulas : bool, default=False
            Put an apostrophe before texts and column names of a CSV or TSV file that begin with
            =, +, -, @, a tab or a carriage return, which a spreadsheet would run as formulas.

        Returns
        -------
        int
            Number of rows.

        Examples
        --------
        >>> import arboost, pyarrow.parquet, tempfile
        >>> model = arboost.GradientBoostingRegressor(n_estimators=50, learning_rate=0.5)
        >>> table = pyarrow.table({"id": [7, 8], "x": [0.0, 1.0]})
        >>> model = model.fit(table.select(["x"]), [0, 1]).model_
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pyarrow.parquet.write_table(table, f"{folder}/in.parquet")
        ...     out = f"{folder}/out.parquet"
        ...     model.predict_files(f"{folder}/in*.parquet", out, columns_to_keep=["id"])
        ...     print(pyarrow.parquet.read_table(out).to_pandas().round(3))
        2
           id  prediction
        0   7         0.0
        1   8         1.0
        """
        from arboost.data.files import require_pyarrow

        require_pyarrow("predict_files")
        from arboost.models.prediction_files import predict_to_file

        return predict_to_file(
            self,
            source,
            path,
            columns_to_keep=columns_to_keep,
            method=method,
            offset=offset,
            batch_rows=batch_rows,
            n_jobs=n_jobs,
            format=format,
            escape_formulas=escape_formulas,
        )


class ModelMethods(EstimatorMethods, Model):
    """A model with explanations, pictures of its trees, and exports."""

    # ---- explanations ----

    def importances(  # noqa: PLR0913 - most are for one kind only
        self,
        kind: str = "gain",
        X: object = None,
        y: object = None,
        *,
        metric: object = None,
        sample_weight: object = None,
        offset: object = None,
        n_repeats: int = 5,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> Floats:
        """Importance of each feature, in the order of ``feature_names``.

        Parameters
        ----------
        kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
            "gain": total gain of all splits on the feature. "cover": total cover of these splits,
            the hessian sum of their rows (the weight of the rows, in forests). "split": their
            number. "permutation": increase of `metric` when the values of the feature are shuffled
            among the rows of X. "shap": mean of the absolute SHAP values of the feature over the
            rows of X, summed over the outputs.
        X : table of shape (n_rows, n_features)
            For "permutation" and "shap" only, best held-out rows: importances on training rows
            overrate features that were overfitted.
        y : array of shape (n_rows,) or (n_rows, n_targets), or the name of a column of X
            True values or labels. Like all parameters below except `sample_weight` and `n_jobs`,
            for "permutation" only.
        metric : str, callable, arboost.Metric or None
            A name that ``eval_metric`` takes, a function of (y, raw scores, weight), lower is
            better, or an `arboost.Metric`; None is "rmse" or "log_loss".
        sample_weight : array of shape (n_rows,), optional
            For "permutation" and "shap" only.
        offset : array, str or list of str, optional
            Offset of the rows, for a model that was fitted with one, as `predict` takes it.
        n_repeats : int, default=5
            Shuffles of each feature; the importance is their mean.
            `arboost.permutation_importances` returns each of them.
        random_state : int, default=0
            Seed of the shuffles.
        n_jobs : int or None
            Number of threads; the importances do not depend on it.

        Returns
        -------
        float64 array of shape (n_features,)

        Examples
        --------
        >>> import arboost
        >>> X, y = [[0, 1], [1, 0], [2, 1], [3, 0]], [0, 1, 2, 3]
        >>> model = arboost.GradientBoostingRegressor(n_estimators=20).fit(X, y).model_
        >>> dict(zip(model.feature_names, model.importances("split").tolist()))
        {'x0': 54.0, 'x1': 0.0}
        """
        from arboost.models.importances import Shuffles, importances

        return importances(
            self,
            kind,
            X,
            y,
            Shuffles(metric, n_repeats, random_state),
            sample_weight=sample_weight,
            offset=offset,
            n_threads=checked_threads(n_jobs),
        )

    def partial_dependence(  # noqa: PLR0913 - all but X and features have defaults
        self,
        X: object,
        features: object,
        *,
        kind: str = "average",
        method: str = "brute",
        response: str = "answer",
        grid: int | Grid = 100,
        sample_weight: object = None,
        offset: object = None,
        n_jobs: int | None = None,
    ) -> PartialDependence:
        """Partial dependence of the predictions on one or two features.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows to average over; the grid is made of their values.
        features : str, int, or a pair of them
            Names or indices.
        kind : {"average", "individual", "both"}, default="average"
            The mean over the rows, or a curve for each row (individual conditional expectation).
        method : {"brute", "recursion"}, default="brute"
            "brute" puts each point of the grid into every row, exactly. "recursion" averages over
            the training rows instead: at a split on another feature both children count, weighted
            by their cover. It is faster, needs predictions that are linear in the raw scores, and
            assumes that the features of the grid are independent of the others.
        response : {"answer", "raw"}, default="answer"
            "answer": predicted values, or class probabilities (with two classes that of the
            second). "raw": raw scores.
        grid : int or arboost.Grid, default=100
            Number of points of a numeric feature, or a Grid for other settings. Categories have a
            point for each level.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows in the mean.
        offset : array, str or list of str, optional
            Offset of the rows, for a model that was fitted with one, as `predict` takes it. "brute"
            adds it to the raw scores of each row; "recursion" is without it.
        n_jobs : int or None
            Number of threads; the result does not depend on it.

        Returns
        -------
        PartialDependence
            With ``grid``, ``average`` and ``individual``.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor(n_estimators=50, learning_rate=0.5)
        >>> model = model.fit([[0, 0], [1, 0], [2, 1], [3, 1]], [0, 1, 2, 3]).model_
        >>> found = model.partial_dependence([[0, 0], [3, 1]], 0)
        >>> found.grid[0], found.average.round(2)
        (array([0., 3.]), array([0., 3.]))
        """
        from arboost.models.partial_dependence import partial_dependence

        return partial_dependence(
            self,
            X,
            features,
            kind=kind,
            method=method,
            response=response,
            grid=grid,
            sample_weight=sample_weight,
            offset=offset,
            n_threads=checked_threads(n_jobs),
        )

    def shap_values(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> Floats:
        """SHAP values of the rows of X: feature contributions to the scores.

        The SHAP values of a row and `expected_value` sum to its raw score, before the link; of
        trees and forests with two classes, to the probability of the second class. An offset is not
        a feature: it is the rest of the raw score.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        background : table of shape (n_others, n_features), optional
            Rows that supply the values of absent features, each with the same probability.
            Without it absent features are averaged over the training rows of each node, by cover.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With several outputs (n_rows, n_features, n_outputs).

        Raises
        ------
        TypeError
            The trees are combined by a weighted median, which is not a sum.

        Examples
        --------
        >>> import arboost
        >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> model = arboost.DecisionTreeRegressor().fit(X, [0, 0, 2, 6]).model_
        >>> model.shap_values([[1, 1]]), model.expected_value()
        (array([[2.5, 1.5]]), array([2.]))
        """
        from arboost.models.shap import shap_values

        return shap_values(self, X, background, n_threads=checked_threads(n_jobs))

    def shap_interactions(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """SHAP interaction values of the rows of X.

        Returns
        -------
        float64 array of shape (n_rows, n_features, n_features)
            Symmetric; the diagonal holds the main effects, and each row of a matrix sums to the
            SHAP value of its feature. With several outputs there is one more axis.
        """
        from arboost.models.shap import shap_interactions

        return shap_interactions(self, X, n_threads=checked_threads(n_jobs))

    def shap_explanation(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> Any:
        """SHAP values as a ``shap.Explanation``, for the plots of that package."""
        from arboost.models.shap import shap_explanation

        return shap_explanation(self, X, background, n_threads=checked_threads(n_jobs))

    def expected_value(self, *, background: object = None, n_jobs: int | None = None) -> Floats:
        """Base value of the SHAP values, shape (n_outputs,).

        It is the mean score of the training rows, by the covers of the leaves, or with a
        `background` the mean score of its rows.
        """
        from arboost.models.shap import expected_value

        return expected_value(self, background, n_threads=checked_threads(n_jobs))

    def verify_monotone(
        self, features: object = None, *, n_jobs: int | None = None
    ) -> tuple[MonotoneProof, ...]:
        """Proof that the raw scores are monotone, or a counter-example.

        Parameters
        ----------
        features : dict, sequence or None
            Directions to prove, in the form of ``monotone_constraints``; None takes those of the
            fit.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        tuple of arboost.MonotoneProof
            One for each constrained feature and output.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1], [2]], [0, 5, 1]).model_
        >>> (proof,) = model.verify_monotone({0: 1})
        >>> proof.holds, proof.counter_example.rows.tolist()
        (False, [[1.5], [2.5]])
        """
        from arboost.models.monotone import verify_monotone

        return verify_monotone(self, features, n_threads=checked_threads(n_jobs))

    # ---- trees as text, pictures and tables ----

    def tree_text(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = 10,
        precision: int = 4,
        show_missing: bool = True,
    ) -> str:
        """Tree as indented text: one line per node with its condition, cover and value.

        The values of averaged trees are predictions, those of summed trees parts of the raw scores.

        Parameters
        ----------
        tree : int, default=0
        max_depth : int or None
            Depth of the deepest nodes shown; None for all.
        precision : int, default=4
            Significant digits of thresholds and values.
        show_missing : bool, default=True
            Whether to show the direction of missing values, which every split has.
        """
        from arboost.plots.trees import tree_text

        return tree_text(
            self, tree, max_depth=max_depth, precision=precision, show_missing=show_missing
        )

    def tree_svg(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = 4,
        precision: int = 4,
        show_missing: bool = True,
    ) -> TreePicture:
        """Tree as an SVG string, which notebooks render; parameters as in `tree_text`."""
        from arboost.plots.trees import tree_svg

        return tree_svg(
            self, tree, max_depth=max_depth, precision=precision, show_missing=show_missing
        )

    def tree_dot(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = None,
        precision: int = 4,
        show_missing: bool = True,
    ) -> str:
        """Tree in DOT, the language of Graphviz; parameters as in `tree_text`."""
        from arboost.plots.trees import tree_dot

        return tree_dot(
            self, tree, max_depth=max_depth, precision=precision, show_missing=show_missing
        )

    def tree_table(self) -> dict[str, NDArray[Any]]:
        """Nodes of all trees as columns: ``pandas.DataFrame(model.tree_table())``.

        The columns are tree, node (0 is the root of its tree), depth, feature (name), threshold
        (values up to it go left; seconds for times) or levels (list of the levels that go left),
        missing ("left" or "right"), left, right (children), gain, cover, output (index of the raw
        score that the tree adds to) and value, or value_0, value_1 and so on for vector leaves. In
        columns of splits, leaves have None, NaN or -1.
        """
        from arboost.models.tree_nodes import tree_table

        return tree_table(self)

    def summary(self) -> Summary:
        """Summary of the model, for ``print`` and notebooks."""
        from arboost.plots.summary import Summary

        return Summary(cast(Any, self))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    # ---- exports ----

    def to_c(
        self, path: str | os.PathLike[str] | None = None, *, name: str = "model"
    ) -> str | None:
        """Write the model as one C99 header that needs nothing but the standard library.

        Raw scores of the compiled code are those of `predict_raw` to the last bit. The comment at
        the head of the file explains its use, and how categories and missing values are passed. The
        rows of a model that was fitted with an offset end with it, one value for each raw score.

        Parameters
        ----------
        path : path or None
            None returns the source instead.
        name : str
            Prefix of the header's functions and macros. Characters that are not allowed in names of
            C become underscores.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1]], [0, 1]).model_
        >>> "void price_predict(const double *row, double *prediction);" in model.to_c(name="price")
        True
        """
        from arboost.models.files.c_header import c_header

        text = c_header(self, name)
        if path is None:
            return text
        write_file(path, text.encode("ascii"))
        return None

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Write the model as ONNX; needs the package onnx (``pip install arboost[onnx]``).

        onnxruntime reaches the same leaf in every tree, but adds in its own order: predictions
        differ from those of `predict` and `predict_proba` by rounding only. A model without
        categories has one input "X" of doubles, shape (n_rows, n_features). With categories there
        is one input for each column, with the column's name, shape (n_rows, 1): strings for
        categories of strings, doubles for all others. Unknown levels and NaN are missing, and
        times are seconds. A model that was fitted with an offset has the input "offset", too, of
        shape (n_rows, n_outputs), which is added to the raw scores.

        The output of a regressor is "variable", those of a classifier are "label" and
        "probabilities"; with several targets "label_0", "probabilities_0", "label_1", ...

        Parameters
        ----------
        path : path or None
            None returns the ``onnx.ModelProto`` instead.
        """
        from arboost.models.files.onnx_model import onnx_model

        model = onnx_model(self)
        if path is None:
            return model
        write_file(path, model.SerializeToString())
        return None

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the model as readable JSON to a file; without a path, return the text.

        Trees are lists of nodes with the names of features, thresholds and levels. `from_json` and
        `load` read it and return the same model, bit for bit.

        Parameters
        ----------
        path : str or path-like, optional
            File to write instead; a failure leaves an existing file unchanged.

        Examples
        --------
        >>> import arboost, json
        >>> model = arboost.DecisionTreeRegressor().fit([[0], [1]], [5, 7]).model_
        >>> split, left, right = json.loads(model.to_json())["trees"][0]["nodes"]
        >>> split["feature"], split["at_most"], split["left"]
        (0, 0.5, 1)
        >>> left
        {'value': 5.0, 'cover': 1.0}
        """
        from arboost.models.files.json_model import to_json

        text = to_json(self)
        if path is None:
            return text
        write_file(path, text.encode("ascii"))
        return None
