"""The search: trials that Optuna proposes, run in threads, told in the order of the proposals.

    proposed   0 | 1 2 3 4 | 5 ...          trial 5 is proposed when trial 1 has been told,
    running        2   3 4                  whichever of the others have ended by then
    told       0   1

So the search depends neither on the number of threads nor on their timing. Trial 0 has the given
parameters, and runs alone.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from threading import Event
from typing import Any, Literal

import optuna
from optuna.trial import FrozenTrial, TrialState

from arboost.backend import in_caller_context, startable_threads, threads
from arboost.errors import InputTypeError, warnings_collected
from arboost.progress import Bar
from arboost.selection.space import Space
from arboost.selection.trials import TrialResult, Trials
from arboost.text import counted

_WINDOW = 4  # trials that are proposed and not told yet
_STARTUP_TRIALS, _WARMUP_STEPS = 5, 2  # of the pruner
_REDRAW_S = 0.5  # seconds between two drawings of the bar while trials run
# Attributes of a trial in its study.
ROUNDS, _SECONDS, _DEFAULT, _REASON = "rounds", "seconds", "default", "reason"


@dataclass(frozen=True)
class Budget:
    """Limits of a search that begins now: the number of trials, and the seconds."""

    trials: int | None
    seconds: float | None
    started: float = field(default_factory=time.monotonic)

    def is_over(self) -> bool:
        """Whether the time is spent."""
        return self.seconds is not None and time.monotonic() - self.started >= self.seconds

    def allows(self, n_proposed: int) -> bool:
        """Whether one more trial may be proposed; the first one always."""
        if n_proposed == 0:
            return True
        return not self.is_over() and (self.trials is None or n_proposed < self.trials)

    def progress(self, n_done: int) -> tuple[int, int]:
        """Steps done and the steps in all, for a progress bar."""
        if self.trials is not None:
            return n_done, self.trials
        assert self.seconds is not None
        elapsed = min(time.monotonic() - self.started, self.seconds)
        return int(elapsed), max(int(self.seconds), 1)


@dataclass(eq=False)
class _RunningTrial:
    """A proposed trial: its future result, error, or stop before the end."""

    trial: optuna.Trial
    is_default: bool
    future: Future[None] | None = None
    result: TrialResult | None = None
    error: Exception | None = None
    was_stopped: bool = False
    seconds: float = 0.0


@dataclass(eq=False)
class SearchRun:
    """One search.

    Attributes
    ----------
    trials : Trials
    space : dict of str to optuna.distributions.BaseDistribution
    budget : Budget
    n_jobs : int or None
    verbose : int
    study : optuna.Study
    in_parallel : bool
        Whether trials may run at the same time; a user's pruner may look at running trials.
    """

    trials: Trials
    space: Space
    budget: Budget
    n_jobs: int | None
    verbose: int
    study: optuna.Study
    in_parallel: bool
    _stop: Event = field(default_factory=Event)
    _window: deque[_RunningTrial] = field(default_factory=deque)

    def search(self) -> tuple[FrozenTrial, str]:
        """Run trials until the budget is spent; return the best one, and the reason of the end."""
        reason = "trials" if self.budget.trials is not None else "seconds"
        _, total = self.budget.progress(0)
        with _quiet_logs(self.verbose), Bar(total, "tuning", visible=self.verbose > 0) as bar:
            try:
                self._run_all(bar)
            except KeyboardInterrupt:
                if self._best is None:
                    raise
                reason = "interrupted"
        if reason == "trials" and self.budget.is_over():
            reason = "seconds"
        best = self._best
        assert best is not None
        return best, reason

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """Trials of the study as rows of a table."""
        return tuple(_trial_record(trial) for trial in self.study.get_trials(deepcopy=False))

    @property
    def default_score(self) -> float:
        """Score of the given parameters."""
        trial = self._default
        assert trial is not None
        return float(trial.values[0])

    def _run_all(self, bar: Bar) -> None:
        """Propose trials, run them, and tell their results in the order of the proposals."""
        n_threads = threads(self.n_jobs)
        n_parallel = min(_WINDOW, n_threads, self.trials.n_parallel) if self.in_parallel else 1
        n_parallel = startable_threads(n_parallel)
        share = max(n_threads // n_parallel, 1)
        n_proposed = n_told = 0
        run = in_caller_context(self._run)
        with ThreadPoolExecutor(n_parallel) if n_parallel > 1 else nullcontext() as pool:
            try:
                if self._default is None:
                    self._run(self._propose(is_default=True), n_threads)
                    n_proposed = n_told = self._tell_next(bar, 0)
                while True:
                    while len(self._window) < _WINDOW and self.budget.allows(n_proposed):
                        running = self._propose(is_default=False)
                        if pool is not None:
                            running.future = pool.submit(run, running, share)
                        n_proposed += 1
                    if not self._window:
                        break
                    self._finish(self._window[0], share, bar, n_told)
                    n_told = self._tell_next(bar, n_told)
                    self._check_failures(at_least=_WINDOW)
                self._check_failures(at_least=1)
            except BaseException:
                self._stop.set()
                raise
            finally:
                self._end()

    def _end(self) -> None:
        """Tell the study the remaining trials of an interrupted search."""
        for running in self._window:
            if running.future is not None and not running.future.cancel():
                wait([running.future])
        while self._window:
            self._tell(self._window.popleft())

    def _propose(self, *, is_default: bool) -> _RunningTrial:
        """Ask the study for a trial, and put it at the end of the window."""
        trial = self.study.ask() if is_default else self.study.ask(self.space)
        if is_default:
            trial.set_user_attr(_DEFAULT, value=True)
        self._window.append(_RunningTrial(trial, is_default))
        return self._window[-1]

    def _tell_next(self, bar: Bar, n_told: int) -> int:
        """Tell the result of the first trial of the window; return the number of trials told."""
        self._tell(self._window.popleft())
        self._show(bar, n_told + 1)
        return n_told + 1

    def _finish(self, running: _RunningTrial, n_threads: int, bar: Bar, n_told: int) -> None:
        """Run a trial, or wait for its thread and keep the bar alive."""
        if running.future is None:
            self._run(running, n_threads)
            return
        while not running.future.done():
            wait([running.future], timeout=_REDRAW_S)
            self._show(bar, n_told)
        running.future.result()

    def _run(self, running: _RunningTrial, n_threads: int) -> None:
        """Run one trial; an error is part of its outcome, but for the given parameters."""
        started, trial, is_default = time.monotonic(), running.trial, running.is_default

        def report(score: float, step: int) -> bool:
            trial.report(score, step)
            stops = self._stop.is_set()
            if not is_default:
                stops = stops or self.budget.is_over() or trial.should_prune()
            running.was_stopped = running.was_stopped or stops
            return running.was_stopped

        if not is_default and self.budget.is_over():
            running.was_stopped = True
            return
        try:
            running.result = self.trials.run(trial.params, report, n_threads, is_default=is_default)
        except Exception as error:
            if is_default:  # of the user's own parameters, or table
                raise
            running.error = error
        finally:
            running.seconds = time.monotonic() - started

    def _tell(self, running: _RunningTrial) -> None:
        """Tell the study the result of a trial; one without a result has failed."""
        trial, result = running.trial, running.result
        trial.set_user_attr(_SECONDS, round(running.seconds, 6))
        if running.was_stopped and running.error is None:
            self.study.tell(trial, state=TrialState.PRUNED)
        elif result is None:
            error = running.error
            reason = "interrupted" if error is None else f"{type(error).__name__}: {error}"
            trial.set_user_attr(_REASON, reason)
            self.study.tell(trial, state=TrialState.FAIL)
        else:
            trial.set_user_attr(ROUNDS, result.rounds)
            self.study.tell(trial, result.score)

    def _check_failures(self, *, at_least: int) -> None:
        """Raise where `at_least` trials of the search space, and all of them, have failed."""
        sampled = [
            trial.user_attrs
            for trial in self.study.get_trials(deepcopy=False)
            if trial.state.is_finished() and _DEFAULT not in trial.user_attrs
        ]
        if len(sampled) >= at_least and all(_REASON in attributes for attributes in sampled):
            reason = sampled[0][_REASON]
            raise ValueError(
                "no trial of the search space has worked; the first failed for this reason: "
                f"{reason}"
            )

    def _show(self, bar: Bar, n_done: int) -> None:
        best = self._best
        done, _ = self.budget.progress(n_done)
        bar.label = f"tuning, {counted(n_done, 'trial')}"
        bar.show(done, {} if best is None else {"best": {self.trials.metric: best.values[0]}})

    @property
    def _best(self) -> FrozenTrial | None:
        """Best trial of this library's searches in the study; the first among equals."""
        sign = -1.0 if self.trials.greater_is_better else 1.0
        return min(self._complete, key=lambda trial: sign * trial.values[0], default=None)

    @property
    def _default(self) -> FrozenTrial | None:
        """Complete trial of the given parameters."""
        return next((trial for trial in self._complete if _DEFAULT in trial.user_attrs), None)

    @property
    def _complete(self) -> list[FrozenTrial]:
        """Complete trials of this library's searches."""
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [trial for trial in trials if ROUNDS in trial.user_attrs]


def make_study(study: Any, trials: Trials, seed: int, verbose: int) -> optuna.Study:
    """A user's study, checked, or a new one in memory."""
    direction: Literal["maximize", "minimize"] = (
        "maximize" if trials.greater_is_better else "minimize"
    )
    if study is None:
        with _quiet_logs(verbose):
            return optuna.create_study(
                direction=direction,
                sampler=optuna.samplers.TPESampler(seed=seed),
                pruner=InOrderMedianPruner(_WINDOW, _STARTUP_TRIALS, _WARMUP_STEPS),
            )
    if not isinstance(study, optuna.Study):
        raise InputTypeError(
            f"study={study!r} ({type(study).__name__}) is not allowed: it must be an optuna.Study, "
            f'or None. Use optuna.create_study(direction="{direction}").'
        )
    names = [direction.name.lower() for direction in study.directions]
    if names != [direction]:
        raise ValueError(
            f"the study has the direction {', '.join(names)}, but {trials.metric!r} is to "
            f'{direction}. Use optuna.create_study(direction="{direction}").'
        )
    return study


class InOrderMedianPruner(optuna.pruners.BasePruner):
    """Prune a trial that is worse than the median of earlier ones at the same step.

    Earlier trials are those that had ended before this one was proposed, not all that have ended by
    now: so the search does not depend on the timing of trials that run at the same time.

    Parameters
    ----------
    window : int
        Trial i is proposed when trial i - window has ended.
    n_startup : int
        Complete trials before which none is pruned.
    n_warmup : int
        Steps before which none is pruned.
    """

    def __init__(self, window: int, n_startup: int, n_warmup: int) -> None:
        self._window = window
        self._n_startup = n_startup
        self._n_warmup = n_warmup

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether the trial stops after its last step."""
        step = trial.last_step
        if step is None or step < self._n_warmup:
            return False
        ended = [
            earlier.intermediate_values
            for earlier in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if earlier.number <= trial.number - self._window
        ]
        values = [steps[step] for steps in ended if step in steps]
        if len(ended) < self._n_startup or not values:
            return False
        value, middle = trial.intermediate_values[step], median(values)
        is_maximized = study.direction == optuna.study.StudyDirection.MAXIMIZE
        return value < middle if is_maximized else value > middle


def _trial_record(trial: FrozenTrial) -> dict[str, Any]:
    steps = trial.intermediate_values
    score = trial.value
    if score is None and steps:
        score = steps[max(steps)]
    return {
        "number": trial.number,
        "state": trial.state.name.lower(),
        "score": score,
        "rounds": trial.user_attrs.get(ROUNDS),
        "seconds": trial.user_attrs.get(_SECONDS),
        "params": dict(trial.params),
        "reason": trial.user_attrs.get(_REASON),
    }


@contextmanager
def _quiet_logs(verbose: int) -> Iterator[None]:
    """Silence Optuna's log, unless asked for, and warnings: the final fit issues those on data."""
    level = optuna.logging.get_verbosity()
    if verbose <= 1:
        optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))
    try:
        with warnings.catch_warnings(), warnings_collected():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)
