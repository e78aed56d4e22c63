"""tune: search for the best parameters of an estimator, with Optuna."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sklearn.base import clone, is_classifier

import arboost
from arboost.errors import InputTypeError, ParameterTypeError, needs_packages
from arboost.estimators.folds import (
    SelectionRows,
    Splits,
    read_rows,
    selection_task,
    set_threads,
)
from arboost.params import kinds
from arboost.params.boosting import PARAMS
from arboost.params.suggestions import known_arguments

if TYPE_CHECKING:
    from optuna import Study

_DEFAULT_SECONDS = 60.0
_HOLD_OUT_ROWS = 5_000  # from here on one split of the rows, below it folds
_HOLD_OUT_SHARE = 0.2
_DEFAULT_FOLDS = 5
_BOOSTERS = (
    arboost.GradientBoostingClassifier,
    arboost.GradientBoostingRanker,
    arboost.GradientBoostingRegressor,
)
_SECONDS = kinds.Real(
    name="seconds",
    default="auto",
    low=0.0,
    low_open=True,
    optional=True,
    automatic=True,
    text="Seconds after which the search ends and the final fit begins.",
    advice="Use seconds=60.",
)
_TRIALS = kinds.Integer(
    name="trials",
    default=None,
    low=1,
    optional=True,
    text="Number of trials, the first one included.",
    advice="Use trials=50.",
)
_STACKS = (arboost.StackingClassifier, arboost.StackingRegressor)


@known_arguments
def tune(
    estimator: Any,
    X: object,
    y: object = None,
    *,
    seconds: float | str | None = "auto",
    trials: int | None = None,
    folds: object = "auto",
    metric: object = None,
    space: Mapping[str, Any] | None = None,
    sample_weight: object = None,
    offset: object = None,
    groups: object = None,
    qid: object = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 1,
    study: Any = None,
) -> Tuning:
    """Search for the best parameters of an estimator, and fit it with them to all rows.

    Needs Optuna: ``pip install "arboost[tune]"``. The first trial has the parameters of the given
    estimator, so that the result is at least as good on the held-out rows. All trials share one
    binned table. Boosters train in rounds that stop early on the held-out rows, and the rounds of
    the best trial are those of the fit; a trial that is worse than the median of the others at the
    same progress is pruned. All other estimators are fitted fold by fold, and pruned between folds.

    Parameters
    ----------
    estimator : estimator
        Any ensemble of arboost, or a pipeline of scikit-learn that ends in one; with `space`, any
        estimator of scikit-learn's interface. Parameters that it sets to other values than their
        defaults are kept, unless `space` names them. All steps of a pipeline are fitted to the
        training rows of each fold alone.
    X : table of shape (n_rows, n_features)
        Any table in memory that ``fit`` takes.
    y : array of shape (n_rows,), or the name of a column of X
    seconds : float, "auto" or None, default="auto"
        Seconds after which the search ends and the final fit begins; a time limit makes the result
        depend on the machine. "auto": 60, or no limit where `trials` is given. None: no limit.
    trials : int, optional
        Number of trials, the first one included. Without a time limit the result then depends on
        `random_state` only.
    folds : int, "auto", scikit-learn splitter, or iterable of pairs, default="auto"
        Held-out rows of the scores. "auto": a fifth of the rows from 5,000 rows on, below it 5
        folds; drawn by `random_state`, stratified for classifiers, of whole groups where there are
        groups.
    metric : name, callable or arboost.Metric, optional
        Metric to optimise; a function is minimised. None: for boosters the metric of their early
        stopping; for others log_loss or rmse. Functions get (y, score, weight), with raw scores
        for boosters, and else class probabilities or predicted values.
    space : dict, optional
        Parameters to search, instead of those with a declared range: a pair (low, high), a list of
        values, or a distribution of Optuna for each name. Parameters of members and of steps of
        pipelines are ``name__parameter``.
    sample_weight : array of shape (n_rows,), optional
        Weights in training and in the metric; rows of weight 0 are left out.
    offset : array of shape (n_rows,) or (n_rows, n_outputs), str or list of str, optional
        Start of the raw scores in training and in the metric, for gradient boosting; or names of
        columns of X, which are then no features.
    groups : array of shape (n_rows,), optional
        Group of each row; a group is never divided.
    qid : array of shape (n_rows,), optional
        Query of each row, for a ranker; queries are never divided. Or the name of a column of X.
    random_state : int, default=0
        Seed of the held-out rows and of the search; that of the fits is the estimator's own.
    n_jobs : int, optional
        Number of threads; None and -1 take all that this process may use. Trials on small tables
        run in parallel. The result does not depend on it.
    verbose : int, default=1
        0: silent; 1: a progress bar with the best score; 2: log messages of Optuna, too.
    study : optuna.Study, optional
        Study to continue, with its own sampler, pruner and storage; its trials run one after the
        other. None: a new one in memory.

    Returns
    -------
    Tuning

    Notes
    -----
    Ctrl-C ends the search: the best parameters so far are fitted and returned. Before the first
    trial has ended, and during the final fit, it raises KeyboardInterrupt.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import DecisionTreeRegressor, tune
    >>> X = np.random.default_rng(0).random((200, 3))
    >>> tuning = tune(DecisionTreeRegressor(random_state=0), X, X[:, 0] > 0.5, trials=5)
    >>> tuning.score <= tuning.default_score
    True
    >>> tuning.estimator.predict(X).shape
    (200,)
    """
    with needs_packages("tune", "arboost.tune"):
        import optuna  # noqa: F401
    from arboost.selection.search import ROUNDS, Budget, SearchRun, make_study
    from arboost.selection.space import declared_space, user_space
    from arboost.selection.trials import make_trials

    _check_estimator(estimator, offset)
    seed = PARAMS["random_state"].check(random_state)
    n_jobs = PARAMS["n_jobs"].check(n_jobs)
    verbose = PARAMS["verbose"].check(verbose)
    trials, limit = _TRIALS.check(trials), _SECONDS.check(seconds)
    if limit == "auto":
        limit = _DEFAULT_SECONDS if trials is None else None
    elif limit is None and trials is None:
        raise ValueError(
            "seconds=None and trials=None would never end. Set one of the two, for example "
            "trials=50."
        )
    budget = Budget(trials, limit)
    distributions = declared_space(estimator) if space is None else user_space(space, estimator)
    kind, table, groups = selection_task(estimator, X, groups, qid)
    if kind is None:
        kind = "classifier" if is_classifier(estimator) else "regressor"
    rows = read_rows(table, y, sample_weight, groups, kind, offset)
    runner = make_trials(estimator, rows, _make_splits(rows, folds, seed), metric, n_jobs)
    if space is None:
        runner.take_rounds(distributions)
    run = SearchRun(
        trials=runner,
        space=distributions,
        budget=budget,
        n_jobs=n_jobs,
        verbose=verbose,
        study=make_study(study, runner, seed, verbose),
        in_parallel=study is None,
    )
    best, stop_reason = run.search()
    params = runner.chosen(best.params, best.user_attrs[ROUNDS])
    best_estimator = set_threads(clone(estimator).set_params(**params), n_jobs)
    if hasattr(estimator, "_TABLE"):
        by_row = {"sample_weight": sample_weight, "offset": offset, "qid": qid}
        if isinstance(estimator, _STACKS):
            by_row["groups"] = groups
        row_arguments = {name: value for name, value in by_row.items() if value is not None}
        best_estimator.fit(X, y, **row_arguments)
    else:  # names of columns mean nothing to a pipeline
        best_estimator.fit(rows.table.X, rows.y, **rows.arguments(best_estimator))
    return Tuning(
        estimator=best_estimator,
        params=MappingProxyType(params),
        score=float(best.values[0]),
        default_score=run.default_score,
        metric=runner.metric,
        greater_is_better=runner.greater_is_better,
        study=run.study,
        trials=run.records,
        stop_reason=stop_reason,
    )


def _check_estimator(estimator: Any, offset: object) -> None:
    has_methods = all(callable(getattr(estimator, name, None)) for name in ("fit", "get_params"))
    if not has_methods or isinstance(estimator, type):
        raise ParameterTypeError(
            f"estimator={estimator!r} ({type(estimator).__name__}) is not allowed: it must be an "
            "estimator, such as arboost.GradientBoostingClassifier().",
            parameter="estimator",
        )
    if offset is not None and not isinstance(estimator, _BOOSTERS):
        raise InputTypeError(
            f"offset is not allowed with {type(estimator).__name__}: only gradient boosting starts "
            "from an offset. Leave it out."
        )


def _make_splits(rows: SelectionRows, folds: object, seed: int) -> Splits:
    if not (isinstance(folds, str) and folds == "auto"):
        return rows.splits(folds, seed)
    if len(rows.y) < _HOLD_OUT_ROWS:
        return rows.splits(min(_DEFAULT_FOLDS, len(rows.y)), seed)
    return [rows.hold_out(_HOLD_OUT_SHARE, seed)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuning:
    """Result of `tune`.

    Attributes
    ----------
    estimator : estimator
        Fitted to all rows with the best parameters.
    params : mapping of str to object
        The best parameters: those that the search has set, the number of rounds that early stopping
        has found, and the values in place of "auto". ``estimator.set_params(**params)`` sets them.
    score : float
        Metric of the best parameters on the held-out rows.
    default_score : float
        Metric of the parameters of the given estimator on the same rows.
    metric : str
    greater_is_better : bool
    study : optuna.Study
    trials : tuple of dict
        One entry for each trial: "number", "state" ("complete", "pruned" or "fail"), "score",
        "rounds", "seconds", "params", and the "reason" of a failure.
    stop_reason : {"trials", "seconds", "interrupted"}
    """

    estimator: Any
    params: Mapping[str, Any]
    score: float
    default_score: float
    metric: str
    greater_is_better: bool
    study: Study
    trials: tuple[dict[str, Any], ...]
    stop_reason: str

    def _lines(self) -> list[tuple[str, str]]:
        states = [trial["state"] for trial in self.trials]
        counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        default = f"{self.default_score:.6g} with the given parameters"
        lines = [
            ("estimator", type(self.estimator).__name__),
            (self.metric, f"{self.score:.6g} ({default})"),
            ("trials", f"{len(states)} ({', '.join(counts)}), ended by {self.stop_reason}"),
        ]
        return [*lines, *((name, _value_text(value)) for name, value in self.params.items())]

    def __repr__(self) -> str:
        lines = self._lines()
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name.ljust(width)}  {text}" for name, text in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._lines()
        )
        return f"<table><tbody>{rows}</tbody></table>"


def _value_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
