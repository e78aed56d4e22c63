"""One fit of an estimator, with its progress in the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import DataFailure, UsageFailure, reading_data
from arboost.cli.models import MODELS, declarations, new_estimator
from arboost.cli.scores import Evaluation, evaluate_rows
from arboost.errors import MissingPackageError

__all__ = ["FitPlan", "as_failures", "check_offset_model", "fit_rows", "score_rows"]

_FEWEST_TREES = 50  # all of which draw one row in 10 billion


@dataclass(frozen=True)
class FitPlan:
    """Estimator and columns of the fits of a command.

    Attributes
    ----------
    model : str
        Name of the model on the command line.
    task : str
    params : mapping of str to object
        Checked parameters.
    target : str
    weight, groups : str or None
        Columns of weights and groups, which are no features.
    offset : tuple of str
        Columns of the offset, which are not features.
    dropped : frozenset of str
        Other columns that are no features.
    by_time : bool
        Whether rows are in the order of time.
    """

    model: str
    task: str
    params: Mapping[str, Any]
    target: str
    weight: str | None = None
    groups: str | None = None
    offset: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()
    by_time: bool = False

    def features(self, names: list[str]) -> list[str]:
        """Return the columns that are features, in their order."""
        left_out = {self.target, self.weight, self.groups, *self.offset, *self.dropped}
        return [name for name in names if name not in left_out]

    def rows(self, table: Any) -> Any:
        """Return the columns that an estimator reads by name: features, offset and target."""
        return table.select([*self.features(table.column_names), *self.offset, self.target])

    @property
    def starts(self) -> dict[str, Any]:
        """The offset among the arguments of `fit`, where there is one."""
        return {"offset": list(self.offset)} if self.offset else {}

    def new_estimator(self) -> Any:
        """Return an estimator whose own validation holds out rows as the command does.

        Forests that draw rows measure out-of-bag errors, for the curve of their reports.
        """
        params = dict(self.params)
        if self._measures_out_of_bag:
            params.setdefault("oob_score", True)
        if "validation_split" in declarations(self.model, self.task) and self.splits_rows:
            if self.groups is not None:
                params.setdefault("validation_split", "group")
            elif self.by_time:
                params.setdefault("validation_split", "time")
        with as_failures(self.params):
            return new_estimator(self.model, self.task, params)

    @property
    def splits_rows(self) -> bool:
        """Whether the fit holds out rows itself, to stop early."""
        values = self._values
        is_auto = values.get("n_estimators") == "auto"
        return is_auto or values.get("n_iter_no_change") is not None

    @property
    def _values(self) -> dict[str, Any]:
        """Values of all parameters, with the defaults of those that were not given."""
        known = declarations(self.model, self.task)
        return {name: param.default for name, param in known.items()} | dict(self.params)

    @property
    def _measures_out_of_bag(self) -> bool:
        """Whether out-of-bag errors are measured by default: cheap, and known of every row."""
        if MODELS[self.model].module != "forest":
            return False
        values = self._values
        has_enough = values.get("n_estimators", 1) >= _FEWEST_TREES
        return bool(values.get("bootstrap")) and has_enough and values["ccp_alpha"] == 0.0

    def takes(self, estimator: Any, argument: str) -> bool:
        """Whether `fit` of the estimator has an argument."""
        import inspect

        return argument in inspect.signature(estimator.fit).parameters


def check_offset_model(offset: Sequence[str], model: str) -> None:
    """Raise UsageFailure for --offset with a model that starts from none."""
    if offset and MODELS[model].module != "boosting":
        raise UsageFailure(
            f"--offset is for gradient_boosting, whose trees are added to it, but the model is "
            f"{model}. Leave it out, or use --model gradient_boosting."
        )


def fit_rows(
    console: Console, plan: FitPlan, table: Any, label: str = "", watched: Any = None
) -> tuple[Any, float]:
    """Return a fitted estimator and the seconds of its fit.

    Parameters
    ----------
    console : Console
    plan : FitPlan
    table : pyarrow.Table
        Training rows, with all columns of the plan.
    label : str
        First word of the line of progress.
    watched : pyarrow.Table, optional
        Held-out rows, for the learning curve of a fit that holds out none itself. They stop no fit.
    """
    from arboost.progress import steps_reported

    with console.phase(f"loading {plan.model}"):
        estimator = plan.new_estimator()
    X = plan.rows(table)
    options = plan.starts
    if plan.splits_rows:
        if plan.groups is not None and plan.takes(estimator, "groups"):
            options["groups"] = table.column(plan.groups).to_numpy()
    elif watched is not None and plan.takes(estimator, "eval_set"):
        rows = (plan.rows(watched), plan.target, *_weights(plan, watched))
        options["eval_set"] = [rows]
        options["eval_names"] = ["held-out"]
    before = f"{label}: " if label else ""
    with console.phase(f"{before}binning") as phase, as_failures(plan.params):
        with steps_reported(lambda step: phase.step(step, before)):
            estimator.fit(X, plan.target, *_weights(plan, table), **options)
        seconds = phase.seconds
        phase.result = f"{before}fitted {plan.model} in {seconds_text(seconds)}"
    return estimator, seconds


def score_rows(
    console: Console, plan: FitPlan, estimator: Any, table: Any
) -> tuple[Evaluation, float]:
    """Return the scores of a fitted estimator on held-out rows, and the seconds."""
    weight = None if plan.weight is None else table.column(plan.weight).to_numpy()
    with console.phase(f"scoring {table.num_rows:,} rows") as phase, reading_data():
        found = evaluate_rows(estimator, plan.rows(table), plan.target, weight=weight)
        return found, phase.seconds


def _weights(plan: FitPlan, table: Any) -> tuple[Any, ...]:
    return () if plan.weight is None else (table.column(plan.weight).to_numpy(),)


@contextmanager
def as_failures(params: Mapping[str, Any]) -> Iterator[None]:
    """Errors of a fit are failures: of a parameter where the message names one that was given."""
    try:
        yield
    except MissingPackageError:
        raise
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        text = str(error)
        is_device = type(error).__name__ == "DeviceError"
        is_sentence = text.endswith(".")  # as all messages of the library
        if isinstance(error, TypeError | RuntimeError) and not (is_sentence or is_device):
            raise
        names_one = any(re.search(rf"\b{re.escape(name)}\b", text) for name in params)
        raise (UsageFailure if names_one or is_device else DataFailure)(text) from error
