"""Gradient boosting of rankings: the documents of queries -> scores that order them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import RandomState

from arboost.data.dataset import Dataset
from arboost.data.feature_names import split_offset, split_target
from arboost.data.target import Task
from arboost.estimators.estimator import store_arguments
from arboost.estimators.gradient_boosting import FitArguments, GradientBoosting
from arboost.losses.metrics import Metric
from arboost.losses.ranking import DEFAULT_METRIC, check_comparable, check_relevance, rank_metrics
from arboost.models.model import Model
from arboost.params.boosting import BOOSTED_RANKER, RANKER_VALUES
from arboost.params.suggestions import known_arguments, public_name
from arboost.training import inputs, monitor
from arboost.training.sets import EvaluationArguments, evaluation_arguments

_BEFORE_QID = 2  # entries of an evaluation set before its queries: X and y
_NO_QID = (
    "qid is None, but a ranker learns the order of the documents of each query. Pass qid=..., the "
    "query of each row, or the name of its column."
)


class GradientBoostingRanker(GradientBoosting):
    """Gradient boosting for ranking: LambdaMART, pairwise and listwise losses.

    A row is a document of a query, and y its relevance: 0 or more, where more is better. The
    predictions are scores, which order the documents of a query; scores of different queries cannot
    be compared. Rows may be in any order.

    Parameters
    ----------
    n_estimators : int or str, default="auto"
        Number of boosting rounds; with early stopping the largest number. "auto" finds the best
        number on held-out rows (folds below 5,000 rows), then trains on all rows; with X_val it
        stops early on X_val. With fewer than 50 rows and neither X_val nor n_iter_no_change, "auto"
        means 100 rounds and the textbook defaults.
    learning_rate : float or str, default="auto"
        Factor on the values of every tree: smaller needs more rounds and overfits later. "auto":
        0.1; with n_estimators="auto", 0.1 in the search for rounds and 0.1 or, where 600 rounds
        take about a second, 0.05 in the fit; with preset="fast", 0.1 in both; with preset="best",
        0.025 in both up to 10,000 rows, rising to 0.1 at 640,000.
    preset : {"fast", "good", "best"}, default="good"
        How hard a fit with n_estimators="auto" tries: "fast", "good" and "best" search up to 150,
        300 and 4,000 rounds. See the table of presets on the page on tuning.
    loss : {"lambdamart", "pairwise", "listwise"}, default="lambdamart"
        Loss to minimise: lambdamart, pairs of documents weighed by the change of a metric;
        pairwise, all pairs alike (RankNet); or listwise, the cross entropy of whole lists
        (XE-NDCG).
    target_metric : {"ndcg", "map", "mrr"}, default="ndcg"
        With loss="lambdamart": metric whose change weighs a pair. map and mrr take every relevance
        above 0 for relevant.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a document of relevance y in NDCG and in the listwise loss: 2^y - 1 or y.
    truncation_level : int or None, default=30
        Pairs with one of this many documents at the top of the present ranking count, and no
        others; with target_metric="ndcg" it is the k of NDCG@k, too. None counts all pairs. It has
        no effect with loss="listwise".
    score_normalization : bool, default=True
        Whether pairs of nearly equal scores weigh more, and gradients of a query grow like the
        logarithm of their sum. It has no effect with loss="listwise".
    tree_method : {"hist", "exact", "approx"}, default="hist"
        Candidates for splits: the bin edges of a histogram, all distinct values, or the quantiles
        of a hessian-weighted sketch.
    sketch_eps : float, default=0.004
        Rank error of the sketch of tree_method="approx", as a share of the total hessian: about 1 /
        sketch_eps candidates for each feature.
    sketch_scope : {"global", "local"}, default="global"
        Whether tree_method="approx" proposes candidates once per round or in every node.
    max_bins : int, default=255
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it while
        max_conflict_rate is 0.
    max_conflict_rate : float, default=0.0
        Share of the rows in which two features of a bundle may both differ from their most frequent
        value; only the first of them is then kept.
    max_depth : int or str or None, default="auto"
        Largest number of splits between the root of a tree and a leaf; None sets no limit. "auto":
        6; with n_estimators="auto", None, and max_leaves=31 unless max_leaves is given.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    grow_policy : {"auto", "depthwise", "leafwise"}, default="auto"
        Order of the splits: nodes nearest to the root first, or the largest gain first. "auto":
        depthwise; with n_estimators="auto", leafwise.
    min_child_weight : float or str, default="auto"
        Smallest sum of hessians (with boosting="gradient", of weights) in each child of a split.
        "auto": 1; with n_estimators="auto", 0.1.
    min_samples_leaf : int or str, default="auto"
        Smallest number of training rows in each child of a split. "auto": 1; with
        n_estimators="auto" and loss="quantile" 5 / min(alpha, 1 - alpha) (the geometric mean over
        several quantiles), and at most a tenth of the rows.
    gamma : float, default=0.0
        Gain that a split must exceed.
    reg_lambda : float or None, default=None
        L2 penalty on the leaf values. None: 1; with n_estimators="auto", 3, or 1 for leaves of
        several values; with boosting="gradient", which has no penalties, 0.
    reg_alpha : float, default=0.0
        L1 penalty on the leaf values.
    max_delta_step : float, default=0.0
        Largest absolute leaf value before the learning rate; 0 sets no limit.
    max_cat_to_onehot : int, default=4
        Largest number of levels of a category in a node for one-vs-rest splits; more levels are
        sorted by their mean gradients and split into two sets.
    max_cat_threshold : int, default=64
        Largest number of levels in the smaller of the two sets that a sorted category is split
        into.
    min_cat_weight : float, default=10.0
        Smallest hessian in a node of a level that a sorted category places by itself; all rarer
        levels stay together.
    cat_smooth : float, default=30.0
        Hessian added to each level's before levels are sorted, so that rare levels do not come
        first or last by chance.
    cat_l2 : float, default=30.0
        L2 penalty in addition to reg_lambda, in the gain of splits of sorted categories.
    subsample : float or str, default="auto"
        Share of the training rows that each tree is grown on. "auto": 1; with n_estimators="auto",
        0.5 unless sampling_method="goss".
    sampling_method : {"auto", "uniform", "gradient_based", "goss"}, default="auto"
        Sampling of rows. uniform: equal probabilities. gradient_based: probabilities in proportion
        to the regularised gradient, with inverse-probability weights; samples choose the splits,
        all rows set the leaf values. goss: LightGBM's GOSS, the rows of the largest gradients and a
        reweighted sample of the others, after 1 / learning_rate rounds on all rows. "auto":
        uniform; with n_estimators="auto", gradient_based, except with boosting="gradient" and the
        losses absolute_error and quantile.
    top_rate : float, default=0.2
        With sampling_method="goss": share of the training rows that are kept for their large
        gradients.
    other_rate : float, default=0.1
        With sampling_method="goss": share of the training rows that are drawn from all others.
    colsample_bytree : float or str, default="auto"
        Share of the features that each tree may use. "auto": 1; with n_estimators="auto", 6 /
        sqrt(n_features), at least 0.1 and at most 1.
    colsample_bylevel : float, default=1.0
        Share of the tree's features that each level may use.
    colsample_bynode : float or str, default="auto"
        Share of the level's features that each node may use. "auto": 1; with n_estimators="auto",
        0.7.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type: names, indices or a mask of columns.
        "from_dtype": only columns of strings, and of the categorical types of pandas, Polars and
        Arrow, which are always categories.
    category_encoding : {"auto", "groups", "mean"}, default="auto"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups,
        of which each frequent level is one and rare levels of similar means share the others; or
        one number, the mean target of a level. "auto": groups in gradient boosting, the mean in all
        other algorithms; a Dataset has its own.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column: "iso" (year first), "dayfirst",
        "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, and day or
        month first where the values of a column leave no doubt. None: dates in strings are
        categories.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them: "hour", "weekday", "month" and
        "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the weekday of
        more than a week, the others of more than a year. None: no parts.
    missing : float, default=float("nan")
        Number that means missing in all numeric columns, such as -999, or 0 in sparse tables; NaN,
        None and NA are always missing.
    monotone_constraints : dict, sequence of {-1, 0, 1}, or None, default=None
        Direction of features, by name or index: predictions may only rise (1) or only fall (-1); a
        sequence has an entry for each feature, 0 for no constraint.
    monotonic_cst : dict, sequence of {-1, 0, 1}, or None, default=None
        scikit-learn's name of monotone_constraints.
    interaction_constraints : list of groups, "pairwise", "no_interactions", or None, default=None
        Groups of features, by name or index, that may share a path from root to leaf; a feature in
        no group shares its paths with no other.
    num_parallel_tree : int, default=1
        Number of trees per round, each grown on its own sample of rows and columns, and averaged:
        above 1, a random forest in every round.
    warm_start : bool, default=False
        Whether a fit of a fitted estimator adds rounds to its own, up to n_estimators in all; with
        n_estimators="auto", as many more as held-out rows ask for.
    rate_drop : float, default=0.0
        DART: share of the earlier trees that a round drops from its gradients; 0: boosting without
        dropout.
    skip_drop : float, default=0.0
        DART: probability that a round drops no tree.
    one_drop : bool, default=False
        DART: whether a round with dropout drops at least one tree.
    sample_type : {"uniform", "weighted"}, default="uniform"
        DART: whether trees are dropped with equal probabilities or in proportion to their weights.
    normalize_type : {"tree", "forest"}, default="tree"
        DART: whether the new tree gets the weight of each dropped tree, or of all of them together.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        Metrics on the validation set after each round; early stopping uses the first. None:
        ndcg@10. Or ndcg, map, mrr and precision, each also of the first k documents, as map@5.
    n_iter_no_change : int or None, default=None
        Early stopping: number of rounds without a better validation score after which training
        stops and the best round is kept; None trains all rounds, or with n_estimators="auto" is 2.5
        / learning_rate, from 10 to 50; with preset="fast", 1 / learning_rate, from 5 to 50; with
        preset="best", 50.
    tol : float, default=0.0
        Early stopping: smallest improvement of the score that counts.
    validation_fraction : float, default=0.1
        Early stopping without X_val: share of the training rows that is held out.
    max_time : float or None, default=None
        Number of seconds after which no further round starts; None sets no limit.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model, which can be saved and runs without scikit-learn.
    estimators_ : array of shape (n_rounds, trees_per_round)
        The trees, each an arboost.Predictor of its part of the scores.
    n_iter_ : int
        Number of rounds of the model; with early stopping up to the best one.
    best_iteration_ : int or None
        Best round on the last validation set, from 0; None without one.
    best_score_ : float or None
        First metric in that round.
    evals_result_ : dict
        Learning curves by set and metric, a value for each round:
        ``evals_result_["validation"]["ndcg@10"]``.
        With n_estimators="auto" the curves of "validation" are those of the search for the number
        of rounds. Its learning rate may be twice that of the model: each round then counts two.
    stop_reason_ : str
        Why training ended: "n_estimators", "n_iter_no_change", "max_time" or "callback NAME".
        The limit of an automatic fit is 'most rounds of preset="good": set preset="best" for more'.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where all of them are strings.
    feature_importances_ : array of shape (n_features_in_,)
        Share of each feature in the total gain of all splits.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRanker
    >>> X = np.arange(200.0).reshape(-1, 1) % 10
    >>> query = np.arange(200) // 10
    >>> model = GradientBoostingRanker(n_estimators=20).fit(X, X[:, 0] > 6, qid=query)
    >>> better, worse = model.predict([[9.0], [1.0]])
    >>> bool(better > worse)
    True
    """

    _KIND = "ranker"
    _GROUPS = "qid"
    _FIXED = RANKER_VALUES
    _TABLE = BOOSTED_RANKER

    def __init__(
        self,
        *,
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        preset: str = "good",
        loss: str = "lambdamart",
        target_metric: str = "ndcg",
        gain: str = "exponential",
        truncation_level: int | None = 30,
        score_normalization: bool = True,
        tree_method: str = "hist",
        sketch_eps: float = 0.004,
        sketch_scope: str = "global",
        max_bins: int = 255,
        bundling: bool = True,
        max_conflict_rate: float = 0.0,
        max_depth: int | str | None = "auto",
        max_leaves: int | None = None,
        grow_policy: str = "auto",
        min_child_weight: float | str = "auto",
        min_samples_leaf: int | str = "auto",
        gamma: float = 0.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        max_cat_to_onehot: int = 4,
        max_cat_threshold: int = 64,
        min_cat_weight: float = 10.0,
        cat_smooth: float = 30.0,
        cat_l2: float = 30.0,
        subsample: float | str = "auto",
        sampling_method: str = "auto",
        top_rate: float = 0.2,
        other_rate: float = 0.1,
        colsample_bytree: float | str = "auto",
        colsample_bylevel: float = 1.0,
        colsample_bynode: float | str = "auto",
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        missing: float = float("nan"),
        monotone_constraints: Mapping[Any, int] | Sequence[int] | None = None,
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        interaction_constraints: str | Sequence[Iterable[Any]] | None = None,
        num_parallel_tree: int = 1,
        warm_start: bool = False,
        rate_drop: float = 0.0,
        skip_drop: float = 0.0,
        one_drop: bool = False,
        sample_type: str = "uniform",
        normalize_type: str = "tree",
        eval_metric: str | Callable[..., float] | Metric | Sequence[Any] | None = None,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        validation_fraction: float = 0.1,
        max_time: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())

    @known_arguments
    def fit(  # type: ignore[override]  # queries instead of groups
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        qid: object = None,
        offset: object = None,
        X_val: object = None,
        y_val: object = None,
        qid_val: object = None,
        sample_weight_val: object = None,
        offset_val: object = None,
        eval_set: object = None,
        eval_names: object = None,
        init_model: object = None,
        callbacks: Iterable[Callable[[monitor.Round], object]] = (),
        checkpoint: object = None,
        memory_limit: int | str = "auto",
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table of documents, their relevances and their queries.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, lists or dicts. Columns are numbers, booleans, decimals, dates and times,
            or categories. NaN and None are missing values. With device="cuda" also an array in
            device memory. A Dataset brings its own y and weights.
            Or a source that is read in batches and need not fit in memory: paths of files or
            folders, patterns such as "data/*.parquet", an iterable of batches that can be read
            again; y and sample_weight are then names of columns, or arrays.
        y : array of shape (n_rows,)
            Relevances, 0 or more: grades, clicks, or amounts. Or the name of a column of X; the
            column is then not used as a feature.
        sample_weight : array of shape (n_rows,), optional
            Weights of the queries, the same for all rows of a query. Queries of weight 0 are left
            out. Or the name of a column of X; the column is then not used as a feature.
        qid : array of shape (n_rows,)
            Query of each row, a number or a string; rows may be in any order. Or the name of a
            column of X; the column is then not used as a feature. A Dataset may have the queries as
            its `groups`.
        offset : array of shape (n_rows,) or str, optional
            Start of the score of each row, to which trees are added. Or the name of a column of X;
            the column is then not used as a feature, and predictions find it by name. After a fit
            with an array, predictions need ``offset=`` as well.
        X_val, y_val, qid_val, sample_weight_val, offset_val : as X, y, qid and so on, optional
            Validation set, scored after every round and used by early stopping. Columns, including
            those of queries and offset, are matched by name.
        eval_set : list of (X, y, qid), (X, y, qid, weight) or (X, y, qid, weight, offset), optional
            Several validation sets instead of X_val, each scored after every round; the last one is
            used by early stopping. The training table may be among them, for its learning curve: X
            itself, or equal values of X and y. It never stops a fit. Where `qid` names a column,
            (X, y) will do.
        eval_names : list of str, optional
            Names of the sets in ``evals_result_``. None: "train" for the training table,
            "validation" for one other set, "validation_0", "validation_1", ... for several.
        init_model : estimator, Predictor or path of a model file, optional
            Model whose training is continued by n_estimators more rounds. (``warm_start`` continues
            this estimator itself, up to n_estimators in all.)
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round; True stops the fit, None and False
            continue it.
        checkpoint : path or arboost.Checkpoint, optional
            File that keeps the state of the fit. A killed fit that is called again continues from
            there, and ends in the same model.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model does not depend on it.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        qid = _given_queries(X, qid)
        queries, eval_set = _split_queries(eval_set)
        sets = evaluation_arguments(
            (X, y, offset), (X_val, y_val, sample_weight_val, offset_val), eval_set, eval_names
        )
        return self._fit(
            FitArguments(
                rows=(X, y, sample_weight),
                offset=offset,
                groups=qid,
                sets=tuple(_with_queries(part, qid, qid_val, queries) for part in sets),
                init_model=init_model,
                callbacks=callbacks,
                checkpoint=checkpoint,
                memory_limit=memory_limit,
                cache=cache,
            )
        )

    @public_name
    def score(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        qid: object = None,
        offset: object = None,
    ) -> float:
        """Return NDCG@10 of the predictions, with the gain of the model: the mean over queries.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,), or the name of a column of X
        sample_weight : array of shape (n_rows,), optional
            Weights of the queries, for each of their rows.
        qid : array of shape (n_rows,), or the name of a column of X
        offset
            As `predict` takes it.
        """
        if qid is None:
            raise ValueError(_NO_QID)
        X, y, _ = split_target(X, y)
        X, qid = split_offset(X, qid, "qid")
        gain = self._fitted_model().params["gain"]
        scores = self.predict(X, offset=offset)
        metrics = rank_metrics(
            y, scores, qid, DEFAULT_METRIC, sample_weight=sample_weight, gain=gain
        )
        return metrics[DEFAULT_METRIC]

    def _read(
        self,
        arrays: tuple[object, object, object],
        params: dict[str, Any],
        old: Model | None,
        stream: inputs.SourceOptions,
    ) -> tuple[inputs.EngineRows, Task]:
        """The training rows with their queries."""
        rows, task = super()._read(arrays, params, old, stream)
        return ranked_rows(rows, task, arrays[0], stream.groups, params["gain"]), task


def ranked_rows(
    rows: inputs.EngineRows, task: Task, X: object, qid: object, gain: str
) -> inputs.EngineRows:
    """The training rows with their queries, checked."""
    source = rows.source
    known = source.groups if isinstance(source, Dataset) else None
    rows = rows.of_queries(inputs.group_values(X, qid, "qid") if known is None else known)
    check_relevance(task.y, gain)
    assert rows.query is not None
    check_comparable(task.y, rows.query)
    return rows


def _given_queries(X: object, qid: object) -> object:
    """The queries of the rows; those of a Dataset are its groups."""
    groups = X.groups if isinstance(X, Dataset) else None
    if qid is None and groups is None:
        raise ValueError(_NO_QID)
    if groups is None or qid is None:
        return groups if qid is None else qid
    if not np.array_equal(np.asarray(qid), groups):
        raise ValueError(
            "qid differs from the groups of the Dataset, which a ranker takes for its queries. "
            "Leave out qid, or make a Dataset without groups."
        )
    return groups


def _split_queries(eval_set: Any) -> tuple[dict[str, object], Any]:
    """The queries of evaluation sets by the names of the sets, and the sets without them.

    A set is (X, y, qid), (X, y, qid, weight) or (X, y, qid, weight, offset); where `qid` of `fit`
    names a column, (X, y) will do.
    """
    if isinstance(eval_set, tuple) and eval_set and not isinstance(eval_set[0], tuple | list):
        eval_set = [eval_set]
    if not isinstance(eval_set, list | tuple):
        return {}, eval_set
    if not all(isinstance(entry, list | tuple) for entry in eval_set):
        return {}, eval_set  # refused with the other sets
    qids = {
        f"eval_set[{i}]": entry[2] for i, entry in enumerate(eval_set) if len(entry) > _BEFORE_QID
    }
    return qids, [(*entry[:_BEFORE_QID], *entry[_BEFORE_QID + 1 :]) for entry in eval_set]


def _with_queries(
    part: EvaluationArguments, qid: object, qid_val: object, qids: Mapping[str, object]
) -> EvaluationArguments:
    """An evaluation set with its queries; a column that `qid` names is that of the set as well."""
    given = qids.get(part.all_names, qid_val)
    if given is None and isinstance(qid, str):
        given = qid
    if given is None:
        remedy = "qid_val" if part.X_name == "X_val" else "(X, y, qid)"
        raise ValueError(
            f"{part.all_names}: the queries of the rows are missing. Pass {remedy}, or name a "
            "column by qid."
        )
    return replace(part, qid=given)
