"""Members of ensembles: the tables that they read, their checked predictions, and parallel fits.

X reaches members in the type that the user passed: a member may be a pipeline that selects columns
by name. Only lists and rare sparse formats, which no estimator takes, are converted. The columns
are described by a `Schema`, as for trees.

    X ──bins──▶ Dataset ─┬─▶ member A ─┬─ all rows ──────────────────▶ fitted member
                         │             ├─ fold 0: rows to train on ──▶ predictions for the others
                         │             └─ fold 1 ...
                         └─▶ member B ─┬─ ...

Fits are independent of each other, so results do not depend on the number of parallel fits.
Estimators of arboost train on the codes of one binned table. All others get rows of X, in the type
of X. No member ever sees another member's rows.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from arboost.backend import in_caller_context, startable_threads, threads
from arboost.data import raw_table
from arboost.data.dataset import Dataset
from arboost.data.feature_names import split_target
from arboost.data.schema import Schema, column_positions, unique_names
from arboost.data.table import as_array, is_records, row_of_series, with_columns
from arboost.data.target import check_pairing
from arboost.errors import InputTypeError, listing
from arboost.estimators.estimator import EngineEstimator, category_encoding
from arboost.losses.base import Floats
from arboost.params.records import BinParams, sought_bins
from arboost.progress import Bar
from arboost.training.inputs import Rows, check_weight_sum
from arboost.training.splits import Split

TABLE_DIMENSIONS = 2
_PROBABILITY_TOLERANCE = 1e-3  # for values outside [0, 1], and for sums other than 1
_METHODS = ("predict_proba", "decision_function", "predict")
_ROW_ARGUMENTS = ("sample_weight", "groups")  # arguments of arboost's fits with one entry per row
# Parameters that bins depend on, each with the value for estimators without that parameter. Members
# with equal values share bins.
_BINNING = {
    "tree_method": None,
    "bundling": True,
    "max_conflict_rate": 0.0,
    "categorical_features": None,
    "category_encoding": "auto",
    "date_format": "auto",
    "calendar_parts": "auto",
    "missing": None,
}

# Sorted labels; for several targets a list with the labels of each; None for regression.
Classes = NDArray[Any] | list[NDArray[Any]] | None
Result = TypeVar("Result")

# ---- tables ----


@dataclass(frozen=True)
class MemberTable:
    """X in the form that members get, and its columns."""

    X: Any
    schema: Schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def take(self, rows: NDArray[Any]) -> MemberTable:
        """Some of the rows."""
        return MemberTable(take_rows(self.X, rows), self.schema)


def member_table(X: Any, schema: Schema | None = None, *, caller: str = "Model") -> MemberTable:
    """X in the form that members get; with a schema, in its order of columns.

    Parameters
    ----------
    X : table of shape (n_rows, n_features, ...)
        Any type that the members take, of two or more dimensions.
    schema : Schema, optional
        Columns of the fit. Columns with names are matched by name, others by position.
    caller : str
        Name of the estimator in messages.
    """
    if isinstance(X, Dataset):
        raise InputTypeError(
            "X is a Dataset, which holds bins instead of values, but estimators need the values. "
            "Pass the table it was made from: members of arboost share its bins in any case, and "
            "AdaBoost with estimator=None trains on a Dataset."
        )
    X = with_columns(X, schema)
    is_sparse = raw_table.is_sparse(X)  # a format of scipy is a dict
    X = raw_table.checked_matrix(X) if is_sparse else to_frame(X, schema)
    if not hasattr(X, "shape"):
        X = as_array(X)
    if len(X.shape) < TABLE_DIMENSIONS:
        if hasattr(X, "to_frame"):
            raise raw_table.series_error(X)
        raise raw_table.dimensions_error(X)
    n_rows, n_features = X.shape[:2]
    for count, what in ((n_rows, "sample"), (n_features, "feature")):
        if count == 0 and (schema is None or what == "feature"):
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 is "
                "required."
            )
    names = _column_names(X)
    if schema is None:
        return MemberTable(X, Schema(names, int(n_features)))
    return MemberTable(_match_columns(X, names, schema, caller), schema)


def training_table(
    X: object, y: object, schema: Schema | None = None, **values: object
) -> tuple[MemberTable, object]:
    """X in the form that members get, and y; y may name a column of X.

    `schema` has the columns of the model whose training is continued; `values` are other values of
    the rows, which are to be in the order of X.
    """
    check_pairing(X, y, **values)
    X, y, name = split_target(X, y)
    table = member_table(X, schema)
    if name is not None:
        table = replace(table, schema=replace(table.schema, target=name))
    return table, y


def to_frame(X: Any, schema: Schema | None = None) -> Any:
    """A dict, a list of dicts or a pandas row as a pandas frame, all others unchanged."""
    pandas = sys.modules.get("pandas")
    has_names = schema is not None and schema.names is not None
    if has_names and pandas is not None and isinstance(X, pandas.Series):
        X = row_of_series(X, schema)
    if not (isinstance(X, Mapping) or is_records(X)):
        return X
    if pandas is None:
        raise InputTypeError(
            f"X is a {type(X).__name__} of named values, and members of an ensemble need a data "
            "frame. Pass one, for example of pandas: pandas.DataFrame(X)."
        )
    is_row = isinstance(X, Mapping) and not all(map(raw_table.is_column, X.values()))
    return pandas.DataFrame([X] if is_row else X)


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Some of the rows of a table, in the type of the table."""
    take = raw_table.frame_rows if raw_table.is_arrow_frame(X) else _safe_indexing
    return take(X, rows.astype(np.intp))


def take_columns(X: Any, features: NDArray[np.intp]) -> Any:
    """Some of the columns of a table, in the type of the table.

    Repeated columns get distinct names: a, a (2), a (3).
    """
    names = _column_names(X)
    if names is None and not hasattr(X, "iloc"):
        return X[:, features]
    if names is None:  # column names other than strings
        return X.iloc[:, features].set_axis(range(len(features)), axis="columns")
    counts: Counter[int] = Counter()
    distinct_names = []
    for feature in features.tolist():
        counts[feature] += 1
        number = f" ({counts[feature]})" if counts[feature] > 1 else ""
        distinct_names.append(names[feature] + number)
    if hasattr(X, "iloc"):
        return X.iloc[:, features].set_axis(distinct_names, axis="columns")
    return raw_table.frame_columns(X, features.tolist(), distinct_names)


def _column_names(X: Any) -> tuple[str, ...] | None:
    if raw_table.is_arrow_frame(X):
        return unique_names(list(X.column_names if hasattr(X, "column_names") else X.columns))
    return unique_names(list(X.columns)) if hasattr(X, "iloc") else None


def _match_columns(X: Any, names: tuple[str, ...] | None, schema: Schema, caller: str) -> Any:
    """X with the columns in the order of the schema."""
    positions = column_positions(names, X.shape[1], schema, caller)
    if positions is None:
        return X
    if hasattr(X, "iloc"):
        return X.iloc[:, positions]
    assert names is not None
    return raw_table.frame_columns(X, positions, [names[position] for position in positions])


# ---- predictions ----


def row_count(X: Any) -> int:
    """The number of rows of a table, or of strings in a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def member_one_hot(member: Any, X: Any, labels: NDArray[Any], **params: Any) -> Floats:
    """The predicted classes of a member, one-hot.

    Parameters
    ----------
    member : fitted estimator
    X : table of shape (n_rows, ...)
    labels : array of shape (n_classes,)
        All classes, sorted; a member may have been fitted on fewer.
    **params
        More arguments of the member's ``predict``.

    Returns
    -------
    float64 array of shape (n_rows, n_classes)
    """
    predicted = np.asarray(member.predict(X, **params))
    check_shape(member, predicted, row_count(X))
    chosen = np.zeros((len(predicted), len(labels)))
    chosen[np.arange(len(predicted)), class_indices(member, predicted.ravel(), labels)] = 1.0
    return chosen


def member_probabilities(
    member: Any, X: Any, labels: NDArray[Any], otherwise: str, **params: Any
) -> Floats:
    """The class probabilities of a member; 0 for classes that it was not fitted on.

    The arguments are those of `member_one_hot`; ``otherwise`` is the alternative to a learner with
    probabilities that error messages name.
    """
    predicted = np.asarray(member.predict_proba(X, **params), np.float64)
    known_classes = np.asarray(getattr(member, "classes_", labels))
    if predicted.shape != (X.shape[0], len(known_classes)):
        raise ValueError(
            f"{type(member).__name__}.predict_proba returned an array of shape {predicted.shape} "
            f"for {X.shape[0]} rows and {len(known_classes)} classes. It must have one row per row "
            "of X, and one column per entry of classes_."
        )
    # NaN fails both comparisons.
    in_range = (predicted >= -_PROBABILITY_TOLERANCE) & (predicted <= 1.0 + _PROBABILITY_TOLERANCE)
    if not in_range.all() or (np.abs(predicted.sum(axis=1) - 1.0) > _PROBABILITY_TOLERANCE).any():
        raise ValueError(
            f"{type(member).__name__}.predict_proba returned rows that are not probabilities: "
            "each must be from 0 to 1, and their sum 1. Use a learner with probabilities, or "
            f"{otherwise}."
        )
    shares = np.zeros((len(predicted), len(labels)))
    shares[:, class_indices(member, known_classes, labels)] = predicted.clip(0.0, 1.0)
    return shares


def member_values(member: Any, X: Any, n_targets: int = 1, **params: Any) -> Floats:
    """The predictions of a regressor, float64 of shape (n_rows, n_targets)."""
    predicted = np.asarray(member.predict(X, **params), np.float64)
    check_shape(member, predicted, row_count(X), n_targets)
    return predicted.reshape(-1, n_targets)


def class_indices(member: Any, values: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """The indices of labels among all classes, which are sorted."""
    indices: NDArray[np.intp] = np.searchsorted(labels, values).clip(max=len(labels) - 1)
    unknown = values[labels[indices] != values]
    if len(unknown):
        raise ValueError(
            f"{type(member).__name__} predicts the label {unknown.tolist()[0]!r}, but y has "
            f"{listing(map(repr, labels.tolist()))}. It must predict labels of y: fit it on them, "
            "or leave it out."
        )
    return indices


def check_shape(member: Any, predicted: NDArray[Any], n_rows: int, n_targets: int = 1) -> None:
    """Raise ValueError unless there is one prediction per row and target."""
    if predicted.shape == (n_rows, n_targets) or (n_targets == 1 and predicted.shape == (n_rows,)):
        return
    expected = "one prediction" if n_targets == 1 else f"{n_targets} predictions"
    raise ValueError(
        f"{type(member).__name__}.predict returned an array of shape {predicted.shape} for "
        f"{n_rows} rows. It must return {expected} for each row."
    )


def find_method(name: str, member: Any, requested: str, advice: str) -> str:
    """The prediction method to call on a member.

    Parameters
    ----------
    name : str
        Name of the member in the ensemble.
    member : estimator
    requested : str
        A method, or "auto" for the first of the three that the member has.
    advice : str
        Alternative that the error message names.
    """
    methods = _METHODS if requested == "auto" else (requested,)
    for method in methods:
        if callable(getattr(member, method, None)):
            return method
    raise ValueError(
        f"the member {name!r} ({type(member).__name__}) has no method {' or '.join(methods)}. Use "
        f"{advice}, or another estimator."
    )


def predict_member(
    member: Any, method: str, X: Any, classes: Classes, *, by_label: bool = False
) -> NDArray[Any] | list[NDArray[Any]]:
    """The predictions of a member for the rows of X.

    Parameters
    ----------
    member : fitted estimator
    method : {"predict_proba", "decision_function", "predict"}
    X : table of shape (n_rows, ...)
    classes : Classes
    by_label : bool
        Whether the member was fitted on labels instead of class indices, as the estimator in a
        FrozenEstimator always was.

    Returns
    -------
    array of shape (n_rows,) or (n_rows, n_columns), or a list of them
        A list has one entry per target. Classes that the member was not fitted on have the
        probability 0.
    """
    predicted = getattr(member, method)(X)
    if classes is None or (isinstance(classes, list) and not isinstance(predicted, list)):
        return np.asarray(predicted)
    by_label = by_label or isinstance(member, FrozenEstimator)
    known_classes = getattr(member, "classes_", None)
    complete = partial(_with_all_classes, member, method, by_label=by_label)
    if isinstance(classes, list):
        targets = zip(predicted, known_classes or classes, classes, strict=True)
        return [complete(np.asarray(values), *labels) for values, *labels in targets]
    predicted = np.asarray(predicted)
    if method != "predict":
        return complete(predicted, known_classes, classes)
    # Numeric labels stay; strings become class indices, which the final estimator can learn from.
    if predicted.dtype.kind in "OUS" and predicted.ndim == 1:
        return class_indices(member, predicted, classes)
    return predicted


def member_classes(member: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """The index of the class that a member predicts for each row."""
    predicted = np.asarray(member.predict(X))
    check_shape(member, predicted, row_count(X))
    predicted = predicted.ravel()
    known_classes = np.asarray(getattr(member, "classes_", np.arange(len(classes))))
    by_label = isinstance(member, FrozenEstimator)
    if not by_label and np.isin(known_classes, np.arange(len(classes))).all():
        return predicted.astype(np.intp)
    return class_indices(member, predicted, classes)


def _with_all_classes(
    member: Any,
    method: str,
    predicted: NDArray[Any],
    known_classes: NDArray[Any] | Sequence[Any] | None,
    classes: NDArray[Any],
    *,
    by_label: bool,
) -> NDArray[Any]:
    """Probabilities or scores with one column per class."""
    if known_classes is None or len(known_classes) >= len(classes):
        return predicted
    labels = np.asarray(known_classes)
    numbers = np.arange(len(classes))
    if by_label or not np.isin(labels, numbers).all():
        numbers = class_indices(member, labels, classes)
    else:
        numbers = labels.astype(np.intp)
    if method == "decision_function":
        missing = np.delete(classes, numbers)
        raise ValueError(
            f"{type(member).__name__} was fitted on rows without the classes "
            f"{listing(map(repr, missing.tolist()))}, so its decision_function has no scores for "
            "them. Use folds with every class among the rows to train on, or "
            'stack_method="predict_proba" if the member has it.'
        )
    shares = np.zeros((len(predicted), len(classes)), predicted.dtype)
    shares[:, numbers] = predicted
    return shares


# ---- fits ----


@dataclass(frozen=True)
class MemberTrainingSet:
    """Training rows of all members.

    Attributes
    ----------
    X : table of shape (n_rows, ...)
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Class indices for classification.
    classes : Classes
    """

    X: Any
    y: NDArray[Any]
    classes: Classes = None


@dataclass(frozen=True)
class MemberJob:
    """One fit of one member.

    Attributes
    ----------
    name : str
    member : estimator
        A clone that belongs to the job, which fits it.
    arguments : mapping
        More arguments of fit; values with one entry per row are indexed by the rows of the fold.
    method : str
        Prediction method to call for the held-out rows.
    split : Split or None
        Rows to train on and held-out rows; None trains on all rows and returns the member.
    n_threads : int or None
        Threads of a member of arboost that would take all of them; None for no limit.
    dataset : Dataset or None
        Binned table with weights, shared with other jobs.
    """

    name: str
    member: Any
    arguments: Mapping[str, Any]
    method: str = "predict"
    split: Split | None = None
    n_threads: int | None = None
    dataset: Dataset | None = None


def run_jobs(
    jobs: Sequence[MemberJob],
    data: MemberTrainingSet,
    *,
    n_jobs: int | None,
    label: str,
    visible: bool,
) -> list[Any]:
    """The result of each job: a fitted member, or predictions for held-out rows.

    Parameters
    ----------
    jobs : sequence of MemberJob
    data : MemberTrainingSet
    n_jobs : int or None
        Number of parallel jobs, in joblib's convention.
    label : str
        Label of the progress bar.
    visible : bool
        Whether a progress bar is shown.
    """
    n_parallel = min(effective_n_jobs(n_jobs), len(jobs))
    n_threads = None if n_parallel == 1 else max(threads(None) // n_parallel, 1)
    results = []
    with Bar(len(jobs), label, visible=visible) as bar:
        shared = [replace(job, n_threads=n_threads) for job in _share_bins(jobs, data)]
        for result in ordered_results(_run_job, ((job, data) for job in shared), n_parallel):
            results.append(result)
            bar.show(len(results))
    return results


def _share_bins(jobs: Sequence[MemberJob], data: MemberTrainingSet) -> list[MemberJob]:
    """The jobs; members of arboost with equal bins get one Dataset."""
    keys = [_bins_key(job) for job in jobs]
    made: dict[Hashable, Dataset | None] = {}
    shared = []
    for job, key in zip(jobs, keys, strict=True):
        if key is not None and keys.count(key) > 1 and key not in made:
            weight = job.arguments.get("sample_weight")
            with _member_note(job):
                made[key] = shared_dataset(job.member, data.X, data.y, weight, job.member.n_jobs)
        shared.append(replace(job, dataset=made.get(key)))
    return shared


def _bins_key(job: MemberJob) -> Hashable:
    """Key of the bins of a job; None where bins cannot be shared."""
    weight = job.arguments.get("sample_weight")
    leaves_out_rows = weight is not None and not np.all(weight)  # as a Dataset does
    if leaves_out_rows or job.arguments.keys() - {"sample_weight"}:
        return None
    return binning_key(job.member)


def binning_key(estimator: object) -> Hashable:
    """Key of the bins of an estimator: equal for parameters that give equal bins.

    None for estimators that do not train on bins: those of other libraries, those with a base
    estimator, and forests with ``quantiles=True``, which look at values.
    """
    values = vars(estimator) if is_engine(estimator) else {}
    if not values or values.get("estimator") is not None or values.get("quantiles", False):
        return None
    # Values as strings: NaN is not equal to itself, and lists are not hashable.
    others = [repr(values.get(name, default)) for name, default in _BINNING.items()]
    return repr(sought_bins(values)), *others


def _run_job(job: MemberJob, data: MemberTrainingSet) -> Any:
    with _member_note(job), _job_settings(job.member, job.n_threads):
        if job.split is not None:
            return _held_out_predictions(job, data)
        if job.dataset is not None:
            return job.member.fit(job.dataset)
        job.member.fit(data.X, data.y, **job.arguments)
        return job.member


@contextmanager
def _member_note(job: MemberJob) -> Iterator[None]:
    """Add the member's name to exceptions."""
    try:
        yield
    except Exception as error:
        where = "" if job.split is None else " on the rows of a fold"
        error.add_note(f"It was raised by the member {job.name!r}{where}.")
        raise


def _held_out_predictions(job: MemberJob, data: MemberTrainingSet) -> Any:
    """Fit a member to the training rows of a fold, and predict the held-out rows."""
    assert job.split is not None
    member, n_rows = job.member, len(data.y)
    train, held_out = (rows.astype(np.intp) for rows in job.split)
    is_pairwise = get_tags(member).input_tags.pairwise
    if job.dataset is not None:
        fit_on_rows(member, job.dataset, job.split[0])
    else:
        arguments = arguments_for_rows(member, job.arguments, train, n_rows)
        X = data.X[np.ix_(train, train)] if is_pairwise else take_rows(data.X, train)
        member.fit(X, data.y[train], **arguments)
    # Of a kernel matrix: similarities of held-out rows to training rows.
    X = data.X[np.ix_(held_out, train)] if is_pairwise else take_rows(data.X, held_out)
    return predict_member(member, job.method, X, data.classes)


@contextmanager
def _job_settings(member: Any, n_threads: int | None) -> Iterator[None]:
    """Silence a member of arboost and limit its threads, for the time of a job.

    Only a member that would take all threads is limited. No prediction depends on either setting.
    """
    if not is_engine(member):
        yield
        return
    settings = {"verbose": member.verbose, "n_jobs": member.n_jobs}
    takes_all = settings["n_jobs"] in (None, -1)
    changed = {"verbose": 0} | ({"n_jobs": n_threads} if takes_all and n_threads else {})
    vars(member).update(changed)
    try:
        yield
    finally:
        vars(member).update(settings)


def check_weights(name: str, estimator: Any) -> str:
    """The name of the row weights among the arguments of fit, or raise TypeError."""
    argument = weight_name(estimator)
    if argument is not None:
        return argument
    kinds = {parameter.kind for parameter in inspect.signature(estimator.fit).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(estimator, "steps"):
        return "sample_weight"  # passed on to an inner estimator, as by GridSearchCV
    raise InputTypeError(
        f"sample_weight is given, but the fit of {name!r} ({type(estimator).__name__}) has no such "
        "argument. Leave out sample_weight, or this estimator."
    )


# ---- shared bins ----


def is_engine(estimator: object) -> bool:
    """Whether an estimator is one of arboost that trains on rows of a Dataset."""
    return isinstance(estimator, EngineEstimator) and estimator._TAKES_ROWS


def shared_dataset(
    estimator: object,
    X: object,
    y: NDArray[Any],
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> Dataset | None:
    """The binned table that clones of an estimator can share, or None.

    Bins cannot be shared by estimators without a `binning_key`, by fits of several targets, and for
    tables with target encoding: the encoding of all rows would leak the targets of other members'
    rows.

    Parameters
    ----------
    estimator : estimator
    X : table of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    sample_weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    n_jobs : int or None
    """
    if y.ndim != 1 or binning_key(estimator) is None:
        return None
    assert isinstance(estimator, EngineEstimator)
    data = make_dataset(estimator, X, y, sample_weight, n_jobs)
    return data if data.encoded_table is None else None


def make_dataset(
    estimator: EngineEstimator,
    X: object,
    y: NDArray[Any],
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> Dataset:
    """The table, binned by the parameters of an estimator; parameters as above."""
    params = estimator._checked_params()
    return Dataset(
        X,
        y,
        sample_weight=sample_weight,
        max_bins=BinParams.of(params).sought_bins,
        tree_method=params["tree_method"],
        bundling=params["bundling"],
        max_conflict_rate=params.get("max_conflict_rate", 0.0),
        categorical_features=vars(estimator)["categorical_features"],
        missing=params["missing"],
        date_format=vars(estimator)["date_format"],
        calendar_parts=vars(estimator)["calendar_parts"],
        category_encoding=category_encoding(params, estimator._DEFAULT_ENCODING),
        n_jobs=n_jobs,
    )


def fit_on_rows(
    estimator: Any,
    dataset: Dataset,
    rows: NDArray[np.uint32],
    weight: Floats | None = None,
    **fit_params: Any,
) -> Any:
    """Fit an estimator of arboost to some rows of a Dataset, and return it.

    The model is the model of a fit to these rows alone, except that the bins are the bins of all
    rows of the Dataset.

    Parameters
    ----------
    estimator : estimator of arboost
        It is fitted in place, not cloned.
    dataset : Dataset
        With y, a result of `shared_dataset`.
    rows : uint32 array
        Ascending, each row once.
    weight : float64 array of shape (len(rows),), or None
        Weights above 0, multiplied with those of the Dataset: for example the number of times that
        each row was drawn.
    **fit_params
        More arguments of ``fit``; groups have one entry per row of the Dataset.
    """
    assert dataset.y is not None
    if dataset.sample_weight is not None:
        dataset_weight = dataset.sample_weight[rows]
        weight = dataset_weight if weight is None else dataset_weight * weight
    offset = None if dataset.offset is None else dataset.offset[rows]
    part = Rows(dataset, rows, dataset.y[rows], check_weight_sum(weight), offset=offset)
    return estimator.fit(part, **fit_params)


# ---- parallel fits ----


def ordered_results(
    task: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_threads: int
) -> Iterator[Result]:
    """Yield the results of a task in the order of its arguments, computed by several threads."""
    n_threads = startable_threads(n_threads)
    if n_threads == 1:
        yield from (task(*values) for values in arguments)
        return
    # Threads even where a joblib context asks for processes: the tasks share a table.
    parallel = Parallel(n_jobs=n_threads, require="sharedmem", return_as="generator")
    configured = in_caller_context(task)
    # Some estimators change the warning filters of the process temporarily. Two threads that do so
    # at the same time may leave changed filters behind; this block restores them.
    with warnings.catch_warnings():
        yield from parallel(delayed(configured)(*values) for values in arguments)


def one_blas_thread() -> Any:
    """A context in which BLAS runs one thread.

    Members in parallel would oversubscribe the cores, and some BLAS sums depend on the number of
    threads, on which results must not depend.
    """
    return threadpool_limits(1, user_api="blas")


def arguments_for_rows(
    estimator: Any, arguments: Mapping[str, Any], rows: NDArray[Any], n_rows: int
) -> dict[str, Any]:
    """The arguments of an estimator's fit to some rows: values per row are indexed.

    Parameters
    ----------
    estimator : estimator
        For estimators of arboost only sample_weight and groups are indexed: a validation table may
        have as many rows as X.
    arguments : mapping
    rows : int array
    n_rows : int
        Number of rows of X.
    """
    by_row = _ROW_ARGUMENTS if is_engine(estimator) else arguments
    return {
        name: _take_by_row(value, rows, n_rows) if name in by_row else value
        for name, value in arguments.items()
    }


def _take_by_row(value: Any, rows: NDArray[Any], n_rows: int) -> Any:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return value
    is_table = hasattr(value, "shape") and len(value.shape) > 0
    if (value.shape[0] if is_table else len(value)) != n_rows:
        return value
    return take_rows(value if is_table else np.asarray(value), rows)


def weight_name(estimator: Any) -> str | None:
    """The name of the row weights among the arguments of fit; None where there is none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if not isinstance(estimator, Pipeline):
        return None
    step, last = estimator.steps[-1]
    name = weight_name(last)
    if name is None or get_config()["enable_metadata_routing"]:
        return name  # metadata routing hands the weights to the steps that request them
    return f"{step}__{name}"


def set_random_states(estimator: Any, seed: int, number: int) -> None:
    """Set all random_state parameters, nested ones too, by a seed and a member's number."""
    names = sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )
    if names:
        states = random_states(seed, number, len(names))
        estimator.set_params(**dict(zip(names, states, strict=True)))


def random_states(seed: int, number: int, n_states: int) -> list[int]:
    """The random states of a member, by a seed and its number."""
    # Below 2^31, the limit that all estimators accept.
    states: list[int] = (
        np.random.SeedSequence([seed, number]).generate_state(n_states) >> 1
    ).tolist()
    return states
