"""Fits of ``arboost train``: of a table in memory, or of files that are read in batches.

In batches no rows are held out: early stopping holds out some itself, and its score is the one that
is shown. Rows in the order of time are an exception: the last ones of the files are scored.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow

from arboost import Evaluation
from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import DataFailure, UsageFailure, failures_as
from arboost.cli.evaluate import fold_scores
from arboost.cli.models import ENSEMBLES, MODELS, declarations, new_estimator
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from arboost.cli.rows import (
    Split,
    Task,
    TrainingRows,
    find_task,
    fold_rows,
    hold_out_latest,
    hold_out_rows,
    read_training_rows,
    record_rows,
    say_keys,
    time_order,
)
from arboost.cli.tables import STANDARD_INPUT, InputTable
from arboost.cli.train import TrainSpec
from arboost.progress import steps_reported
from arboost.text import counted, size_text

_FEWEST_TREES = 50  # all of which draw one row in 10 billion
_COPIES = 3.0  # of the table: rows to train on, rows to score, and codes
_SMALL = 50e6  # bytes of files that need no estimate
_SHARE_OF_LIMIT = 4.0  # held-out rows take at most a fourth of the memory limit


@dataclass(kw_only=True)
class Trained:
    """Result of a training.

    Attributes
    ----------
    estimator : fitted estimator
    task : Task
    scores : Evaluation or None
    record : RowRecord
    split_text : str
        How rows were held out.
    n_rows, n_train : int
        Rows of the table, and rows of the saved model.
    seconds : dict of str to float
        Times of the steps.
    """

    estimator: Any
    task: Task
    scores: Evaluation | None
    record: RowRecord
    split_text: str
    n_rows: int
    n_train: int
    seconds: dict[str, float]

    @property
    def curves(self) -> dict[str, dict[str, list[float]]]:
        """Learning curves by set and metric; empty where the model has none."""
        return dict(getattr(self.estimator, "evals_result_", None) or {})


@dataclass
class _Fits:
    """Fits of one model on rows of one table, with their progress and times."""

    console: Console
    spec: TrainSpec
    task: Task
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def params(self) -> dict[str, Any]:
        """Checked parameters."""
        return self.spec.values((self.task.name,))

    @property
    def _values(self) -> dict[str, Any]:
        """Parameters and the defaults of all others."""
        known = declarations(self.spec.model, self.task.name)
        return {name: param.default for name, param in known.items()} | self.params

    @property
    def splits_rows(self) -> bool:
        """Whether a fit holds out rows itself, to stop early."""
        values = self._values
        is_auto = values.get("n_estimators") == "auto"
        return is_auto or values.get("n_iter_no_change") is not None

    @property
    def offset(self) -> dict[str, Any]:
        """Offset among the arguments of `fit`, where there is one."""
        return {"offset": self.spec.rows.offset} if self.spec.rows.offset else {}

    def new_estimator(self) -> Any:
        """Make an estimator whose validation holds out rows as the command does.

        Forests that draw rows measure out-of-bag errors, for the curve of their reports.
        """
        params, values, rows = self.params, self._values, self.spec.rows
        has_enough = "ccp_alpha" in values and values.get("n_estimators", 1) >= _FEWEST_TREES
        if has_enough and values.get("bootstrap") and values["ccp_alpha"] == 0.0:
            params.setdefault("oob_score", True)
        if "validation_split" in values and self.splits_rows:
            if rows.groups is not None:
                params.setdefault("validation_split", "group")
            elif rows.time_column is not None:
                params.setdefault("validation_split", "time")
        with (
            self.console.phase(f"loading {self.spec.model}"),
            failures_as(DataFailure, self.params),
        ):
            return new_estimator(self.spec.model, self.task.name, params)

    def takes(self, estimator: Any, argument: str) -> bool:
        """Whether `fit` of the estimator has an argument."""
        return argument in inspect.signature(estimator.fit).parameters

    def fit(self, rows: TrainingRows, label: str = "", held_out: TrainingRows | None = None) -> Any:
        """Fit an estimator to rows.

        `held_out` rows give the learning curve of a fit that holds out none itself; they do not
        stop it. `label` is the first word of the line of progress.
        """
        estimator, target = self.new_estimator(), self.spec.rows.target
        options = self.offset | rows.queries
        if self.splits_rows:
            if rows.groups is not None and self.takes(estimator, "groups"):
                options["groups"] = rows.groups
        elif held_out is not None and self.takes(estimator, "eval_set"):
            queries = held_out.queries.values()
            options["eval_set"] = [(held_out.X, target, *queries, held_out.weights)]
            options["eval_names"] = ["held-out"]
        before = f"{label}: " if label else ""
        with self.console.phase(f"{before}binning") as phase:
            with (
                failures_as(DataFailure, self.params),
                steps_reported(lambda step: phase.step(step, before)),
            ):
                estimator.fit(rows.X, target, sample_weight=rows.weights, **options)
            self.add_seconds("fitting", phase.seconds)
            phase.result = f"{before}fitted {self.spec.model} in {seconds_text(phase.seconds)}"
        return estimator

    def score(self, estimator: Any, rows: TrainingRows) -> Evaluation:
        """Score a fitted estimator on held-out rows."""
        with (
            self.console.phase(f"scoring {counted(rows.table.num_rows, 'row')}") as phase,
            failures_as(DataFailure),
        ):
            scores: Evaluation = estimator.evaluate(
                rows.X, self.spec.rows.target, sample_weight=rows.weights, **rows.queries
            )
            self.add_seconds("scoring", phase.seconds)
            return scores

    def add_seconds(self, step: str, seconds: float) -> None:
        """Add the time of a step."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds


def train_model(console: Console, spec: TrainSpec) -> Trained:
    """Train a model on a table, and score it."""
    if spec.memory_limit is not None:
        _check_batches(spec)
    source = spec.open_table(console)
    if spec.memory_limit is None and _fits_in_memory(console, spec, source):
        return _train_in_memory(console, spec, source)
    return _train_in_batches(console, spec, source)


# ---- in memory ----


def _train_in_memory(console: Console, spec: TrainSpec, source: InputTable) -> Trained:
    """Train on a table, and score on held-out rows or on folds."""
    rows = read_training_rows(console, spec.rows, source, spec.asked_task)
    fits = _Fits(console, spec, rows.task, {"reading": source.seconds})
    split: Split | None = None  # None: the saved model is trained on all rows
    scores, split_text = None, "none scored"
    if spec.folds is not None:
        scores, split_text = _score_folds(fits, rows, spec.folds)
        estimator = fits.fit(rows, "all rows")
    elif spec.holdout == 0:
        estimator = fits.fit(rows)
    else:
        with console.phase("holding out rows"):
            split = hold_out_rows(rows, spec.holdout, spec.seed)
            training, held_out = rows.take(split.train), rows.take(split.test)
        split_text, is_default = split.text, spec.holdout is None and not spec.refit
        more = "; --refit trains on all rows afterwards, --holdout changes the share"
        console.say(split_text + (more if is_default else ""))
        estimator = fits.fit(training, held_out=held_out)
        scores = fits.score(estimator, held_out)
        if spec.refit:
            estimator, split = fits.fit(rows, "all rows"), None
            split_text += "; the saved model is trained on all rows"
    with console.phase("noting the rows"):
        record = record_rows(rows, split)
    return Trained(
        estimator=estimator,
        task=rows.task,
        scores=scores,
        record=record,
        split_text=split_text,
        n_rows=rows.table.num_rows,
        n_train=rows.table.num_rows if split is None else len(split.train),
        seconds=fits.seconds,
    )


def _score_folds(fits: _Fits, rows: TrainingRows, n_folds: int) -> tuple[Evaluation, str]:
    """Mean scores of a fit for each fold, and the sentence that says how rows are divided."""
    splits = fold_rows(rows, n_folds, fits.spec.seed)
    fits.console.say(splits[0].text)
    scores = []
    for number, split in enumerate(splits, 1):
        estimator = fits.fit(rows.take(split.train), f"fold {number} of {len(splits)}")
        scores.append(fits.score(estimator, rows.take(split.test)))
    return fold_scores(scores), splits[0].text


# ---- in batches ----


def _fits_in_memory(console: Console, spec: TrainSpec, source: InputTable) -> bool:
    """Whether a fit can hold the table; prints the sizes where it cannot.

    A table that needs to be in memory, for the model or the held-out rows, is read anyway.
    """
    from arboost.data.memory import available_bytes

    if STANDARD_INPUT in spec.rows.data or source.files.n_bytes < _SMALL:
        return True
    needed, free = _COPIES * source.files.table_bytes, available_bytes()
    if needed <= free:
        return True
    sizes = f"about {size_text(needed)}, more than the {size_text(free)} that are free"
    if spec.model in ENSEMBLES or _options_of_tables(spec):
        console.warn(f"the fit may need {sizes}; --memory-limit reads the table in batches")
        return True
    console.say(f"a fit in memory may need {sizes}: the table is read in batches")
    return False


def _check_batches(spec: TrainSpec) -> None:
    """Raise UsageFailure for a model or an option that needs the table in memory."""
    if spec.model in ENSEMBLES:
        others = ", ".join(name for name in MODELS if name not in ENSEMBLES)
        raise UsageFailure(
            f"--memory-limit is not for {spec.model}, which needs the table in memory. Use "
            f"another model ({others}), or leave it out."
        )
    for option in _options_of_tables(spec):
        raise UsageFailure(
            f"{option} needs the table in memory: leave it or --memory-limit out, and score other "
            "files with arboost evaluate."
        )


def _options_of_tables(spec: TrainSpec) -> list[str]:
    """Options of the command line that need the table in memory."""
    values = {
        "--holdout": None if spec.rows.time_column is not None else spec.holdout,
        "--folds": spec.folds,
        "--refit": spec.refit,
        "--drop-missing-target": spec.rows.drop_missing_target,
    }
    return [option for option, value in values.items() if value]


def _train_in_batches(console: Console, spec: TrainSpec, source: InputTable) -> Trained:
    """Train on files within the memory limit."""
    features = spec.rows.features(source)
    task, split = _read_task(console, spec, source)
    fits = _Fits(console, spec, task)
    with failures_as(DataFailure):
        first = next(iter(source.select(features).files.batches()), None)
    if first is not None:
        say_keys(console, pyarrow.Table.from_batches([first]), features)
    estimator = _fit_batches(fits, source, features, split)
    record, held_out = _record_batches(console, spec, source, features, split)
    scores = None
    if held_out is not None:
        scores = fits.score(estimator, TrainingRows(spec.rows, held_out, features, task))
    n_train = estimator.model_.provenance.get("rows", 0)
    return Trained(
        estimator=estimator,
        task=task,
        scores=scores,
        record=record,
        split_text=_early_stopping_text(estimator) if split is None else split.text,
        n_rows=n_train if split is None else len(split.train) + len(split.test),
        n_train=n_train,
        seconds=fits.seconds,
    )


def _read_task(console: Console, spec: TrainSpec, source: InputTable) -> tuple[Task, Split | None]:
    """Task of the target, and the split by time; their columns alone are read."""
    target, times = spec.rows.target, spec.rows.time_column
    columns = source.select([target, *filter(None, [times])])
    label = f"the target of {source.label}"
    with console.phase(f"reading {label}") as phase, failures_as(DataFailure):
        stream = columns.files.batches(phase.update_bytes)
        table = pyarrow.Table.from_batches(list(stream), stream.schema)
        task = find_task(table.column(target), target, *spec.asked_task)
        phase.result = f"read {label} in {seconds_text(phase.seconds)}"
    console.say(f"task: {task.name} ({task.reason})")
    if times is None:
        return task, None
    order = time_order(console, table.column(times), times)
    if order is not None:
        row = int(np.flatnonzero(np.diff(np.argsort(order)) < 0)[0]) + 2
        raise DataFailure(
            f"--time-column {times}: with --memory-limit the rows must be in the order of time, "
            f"but row {row:,} is earlier than the row before it. Sort the files by this column, or "
            "leave --memory-limit out."
        )
    return task, None if spec.holdout == 0 else hold_out_latest(table.num_rows, spec.holdout)


def _fit_batches(fits: _Fits, source: InputTable, features: list[str], split: Split | None) -> Any:
    """Fit an estimator to the rows of files; to those before the held-out ones of a split."""
    console, spec, rows = fits.console, fits.spec, fits.spec.rows
    estimator = fits.new_estimator()
    arguments = fits.offset
    if rows.groups is not None:
        if not fits.splits_rows or not fits.takes(estimator, "groups"):
            raise UsageFailure(
                "--groups is for early stopping here: leave it or --memory-limit out."
            )
        arguments["groups"] = rows.groups
    if rows.weight is not None:
        arguments["sample_weight"] = rows.weight
    if rows.qid is not None:
        arguments["qid"] = rows.qid
    needed = {*features, *(name for option, name in rows.roles if option != "--time-column")}
    table: Any = source.select([name for name in source.files.names if name in needed]).files
    if split is not None:
        table = _first_rows(table.batches(), len(split.train))
    limit = spec.memory_limit or "auto"
    within = "" if limit == "auto" else f" within {limit}"
    text = "no rows are held out" if split is None else split.text
    console.say(f"{source.label} is read in batches{within}; {text}")
    with console.phase(f"reading {source.label}") as phase:
        with failures_as(DataFailure, {*fits.params, "memory_limit"}), steps_reported(phase.step):
            estimator.fit(table, rows.target, memory_limit=limit, **arguments)
        fits.add_seconds("reading and fitting", phase.seconds)
        text = f"fitted {spec.model} in {seconds_text(phase.seconds)}"
        phase.result = f"read {source.label} and {text}"
    return estimator


def _first_rows(stream: Any, n_rows: int) -> Any:
    """Stream of the first rows of a stream."""

    def batches() -> Iterator[Any]:
        left = n_rows
        for batch in stream:
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return

    return pyarrow.RecordBatchReader.from_batches(stream.schema, batches())


def _record_batches(
    console: Console,
    spec: TrainSpec,
    source: InputTable,
    features: list[str],
    split: Split | None,
) -> tuple[RowRecord, Any]:
    """Record of the rows, which are read once more, and the held-out rows to score.

    Where the held-out rows would take more than a share of the memory limit, they are a sample.
    """
    from arboost.data.memory import limit_bytes

    rows = spec.rows
    columns = [*features, rows.target]
    others = [*rows.offset, *filter(None, [rows.weight])]
    trained, held_out, start = RowSample(), RowSample(), 0
    step = 1
    parts: list[Any] = []
    with console.phase("noting the rows") as phase, failures_as(DataFailure):
        for batch in source.select([*columns, *others]).files.batches(phase.update_bytes):
            hashes = row_hashes(batch, columns)
            n_train = len(hashes) if split is None else max(len(split.train) - start, 0)
            start += len(hashes)
            trained.add(hashes[:n_train])
            if n_train < len(hashes):
                assert split is not None
                if not parts:
                    n_bytes = batch.nbytes / len(hashes) * len(split.test)
                    most = limit_bytes(spec.memory_limit or "auto") / _SHARE_OF_LIMIT
                    step = math.ceil(n_bytes / most)
                held_out.add(hashes[n_train:])
                part = batch.slice(n_train)
                parts.append(part.take(np.arange(0, part.num_rows, step)) if step > 1 else part)
    if split is None:
        return RowRecord.of(rows.target, trained), None
    table = pyarrow.Table.from_batches(parts)
    if step > 1:
        console.say(f"{table.num_rows:,} of {held_out.n_rows:,} held-out rows are scored")
    return RowRecord.of(rows.target, trained, held_out), table


def _early_stopping_text(estimator: Any) -> str:
    facts = estimator.model_.provenance
    if "best_score" in facts:
        return (
            f"{facts['metric']} {facts['best_score']:.5g} on rows that early stopping held out; "
            "arboost evaluate scores other files"
        )
    return "none scored; arboost evaluate scores other files"
