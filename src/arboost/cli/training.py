"""Fits of ``arboost train``: of a table in memory, or of files that are read in batches.

In batches no rows are held out: early stopping holds out some itself, and its score is the one that
is shown. Rows in the order of time are an exception: the last ones of the files are scored.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from arboost import Evaluation
from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import DataFailure, UsageFailure, failures_as
from arboost.cli.evaluate import fold_scores
from arboost.cli.models import ENSEMBLES, MODELS, declarations, new_estimator
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from arboost.cli.rows import (
    HOLDOUT,
    Split,
    Task,
    TrainingRows,
    find_task,
    fold_rows,
    hold_out_latest,
    hold_out_rows,
    read_training_rows,
    say_keys,
    time_order,
)
from arboost.cli.tables import STANDARD_INPUT, InputTable, RowSpec, refuse_input
from arboost.cli.train import TrainSpec
from arboost.progress import steps_reported

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
    """Fits of one model on rows of one table, with their progress and times.

    Attributes
    ----------
    params : mapping of str to object
        Checked parameters.
    """

    console: Console
    model: str
    task: Task
    spec: RowSpec
    params: Mapping[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)

    def new_estimator(self) -> Any:
        """Make an estimator whose validation holds out rows as the command does.

        Forests that draw rows measure out-of-bag errors, for the curve of their reports.
        """
        known = declarations(self.model, self.task.name)
        params = dict(self.params)
        values = {name: param.default for name, param in known.items()} | params
        has_enough = "ccp_alpha" in known and values.get("n_estimators", 1) >= _FEWEST_TREES
        if has_enough and values.get("bootstrap") and values["ccp_alpha"] == 0.0:
            params.setdefault("oob_score", True)
        if "validation_split" in known and self.splits_rows:
            if self.spec.groups is not None:
                params.setdefault("validation_split", "group")
            elif self.spec.time_column is not None:
                params.setdefault("validation_split", "time")
        with self.console.phase(f"loading {self.model}"), failures_as(DataFailure, self.params):
            return new_estimator(self.model, self.task.name, params)

    @property
    def splits_rows(self) -> bool:
        """Whether a fit holds out rows itself, to stop early."""
        known = declarations(self.model, self.task.name)
        values = {name: param.default for name, param in known.items()} | dict(self.params)
        is_auto = values.get("n_estimators") == "auto"
        return is_auto or values.get("n_iter_no_change") is not None

    @property
    def offset(self) -> dict[str, Any]:
        """Offset among the arguments of `fit`, where there is one."""
        return {"offset": list(self.spec.offset)} if self.spec.offset else {}

    def takes(self, estimator: Any, argument: str) -> bool:
        """Whether `fit` of the estimator has an argument."""
        return argument in inspect.signature(estimator.fit).parameters

    def fit(self, rows: TrainingRows, label: str = "", held_out: TrainingRows | None = None) -> Any:
        """Fit an estimator to rows.

        `held_out` rows give the learning curve of a fit that holds out none itself; they do not
        stop it. `label` is the first word of the line of progress.
        """
        estimator = self.new_estimator()
        options = self.offset
        if self.splits_rows:
            if rows.groups is not None and self.takes(estimator, "groups"):
                options["groups"] = rows.groups
        elif held_out is not None and self.takes(estimator, "eval_set"):
            options["eval_set"] = [(held_out.X, self.spec.target, *_weights(held_out))]
            options["eval_names"] = ["held-out"]
        before = f"{label}: " if label else ""
        with self.console.phase(f"{before}binning") as phase:
            with (
                failures_as(DataFailure, self.params),
                steps_reported(lambda step: phase.step(step, before)),
            ):
                estimator.fit(rows.X, self.spec.target, *_weights(rows), **options)
            self.add_seconds("fitting", phase.seconds)
            phase.result = f"{before}fitted {self.model} in {seconds_text(phase.seconds)}"
        return estimator

    def score(self, estimator: Any, rows: TrainingRows) -> Evaluation:
        """Score a fitted estimator on held-out rows."""
        with (
            self.console.phase(f"scoring {rows.table.num_rows:,} rows") as phase,
            failures_as(DataFailure),
        ):
            scores: Evaluation = estimator.evaluate(
                rows.X, self.spec.target, sample_weight=rows.weights
            )
            self.add_seconds("scoring", phase.seconds)
            return scores

    def add_seconds(self, step: str, seconds: float) -> None:
        """Add the time of a step."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds


def _weights(rows: TrainingRows) -> tuple[Any, ...]:
    weights = rows.weights
    return () if weights is None else (weights,)


def train_model(console: Console, spec: TrainSpec) -> Trained:
    """Train a model on a table, and score it."""
    if spec.memory_limit is not None:
        _check_batches(spec)
    source = InputTable(console, spec.rows.data, spec.rows.form)
    refuse_input(spec.output, source.files.paths)
    if spec.memory_limit is not None or not _fits_in_memory(console, spec, source):
        return _train_in_batches(console, spec, source)
    rows = read_training_rows(console, spec.rows, source, spec.asked_task)
    params = spec.values((rows.task.name,))
    fits = _Fits(console, spec.model, rows.task, spec.rows, params, {"reading": source.seconds})
    if spec.folds is not None:
        return _cross_validate(fits, rows, spec.folds, spec.seed)
    share = HOLDOUT if spec.holdout is None else spec.holdout
    if share == 0:
        record = _record(rows)
        return _trained(fits, rows, record, fits.fit(rows), None, "none scored")
    with console.phase("holding out rows"):
        split = hold_out_rows(rows, share, spec.seed)
        is_default = spec.holdout is None and not spec.refit
        more = "; --refit trains on all rows afterwards, --holdout changes the share"
        console.say(split.text + (more if is_default else ""))
        record = _record(rows, None if spec.refit else split)
        training, held_out = rows.take(split.train), rows.take(split.test)
    estimator = fits.fit(training, held_out=held_out)
    scores = fits.score(estimator, held_out)
    if not spec.refit:
        return _trained(fits, rows, record, estimator, scores, split.text, len(split.train))
    text = f"{split.text}; the saved model is trained on all rows"
    return _trained(fits, rows, record, fits.fit(rows, "all rows"), scores, text)


def _cross_validate(fits: _Fits, rows: TrainingRows, n_folds: int, seed: int) -> Trained:
    """Score a fit on each fold, then train on all rows."""
    record = _record(rows)
    splits = fold_rows(rows, n_folds, seed)
    fits.console.say(splits[0].text)
    scores = []
    for number, split in enumerate(splits, 1):
        estimator = fits.fit(rows.take(split.train), f"fold {number} of {len(splits)}")
        scores.append(fits.score(estimator, rows.take(split.test)))
    estimator = fits.fit(rows, "all rows")
    return _trained(fits, rows, record, estimator, fold_scores(scores), splits[0].text)


def _trained(
    fits: _Fits,
    rows: TrainingRows,
    record: RowRecord,
    estimator: Any,
    scores: Evaluation | None,
    split_text: str,
    n_train: int | None = None,
) -> Trained:
    return Trained(
        estimator=estimator,
        task=rows.task,
        scores=scores,
        record=record,
        split_text=split_text,
        n_rows=rows.table.num_rows,
        n_train=rows.table.num_rows if n_train is None else n_train,
        seconds=fits.seconds,
    )


def _record(rows: TrainingRows, split: Split | None = None) -> RowRecord:
    """Record which rows train the saved model, and which are held out; by default all train."""
    target = rows.spec.target
    hashes = row_hashes(rows.table, [*rows.features, target])
    if split is None:
        return RowRecord.of(target, RowSample(hashes))
    return RowRecord.of(target, RowSample(hashes[split.train]), RowSample(hashes[split.test]))


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
    rows = spec.rows
    features = rows.features(source.names, source.label)
    task, split = _read_task(console, spec, source)
    fits = _Fits(console, spec.model, task, rows, spec.values((task.name,)))
    _say_keys(console, source, features)
    estimator = _fit_batches(fits, spec, source, features, split)
    record, held_out = _record_batches(console, spec, source, features, split)
    scores = None
    if held_out is not None:
        scores = fits.score(estimator, TrainingRows(rows, held_out, features, task, source))
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
    import pyarrow

    target, times = spec.rows.target, spec.rows.time_column
    columns = source.select([target, *filter(None, [times])])
    label = f"the target of {source.label}"
    with console.phase(f"reading {label}") as phase, failures_as(DataFailure):
        stream = columns.batches(phase.update_bytes)
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
    share = HOLDOUT if spec.holdout is None else spec.holdout
    return task, hold_out_latest(table.num_rows, share) if share else None


def _say_keys(console: Console, source: InputTable, features: list[str]) -> None:
    """Name the features that look like keys in the first batch."""
    import pyarrow

    with failures_as(DataFailure):
        first = next(iter(source.select(features).batches()), None)
    if first is not None:
        say_keys(console, pyarrow.Table.from_batches([first]), features)


def _fit_batches(
    fits: _Fits,
    spec: TrainSpec,
    source: InputTable,
    features: list[str],
    split: Split | None,
) -> Any:
    console, rows = fits.console, spec.rows
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
    needed = {*features, *(name for option, name in rows.roles if option != "--time-column")}
    table: Any = source.select([name for name in source.names if name in needed]).files
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
        text = f"fitted {fits.model} in {seconds_text(phase.seconds)}"
        phase.result = f"read {source.label} and {text}"
    return estimator


def _first_rows(stream: Any, n_rows: int) -> Any:
    """Stream of the first rows of a stream."""
    import pyarrow

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
    import pyarrow

    from arboost.data.memory import limit_bytes

    rows = spec.rows
    columns = [*features, rows.target]
    others = [*rows.offset, *filter(None, [rows.weight])]
    trained, held_out, start = RowSample(), RowSample(), 0
    step = 1
    parts: list[Any] = []
    with console.phase("noting the rows") as phase, failures_as(DataFailure):
        for batch in source.select([*columns, *others]).batches(phase.update_bytes):
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
