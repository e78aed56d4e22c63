"""The pruner of `arboost.tune`; needs Optuna."""

from __future__ import annotations

from statistics import median

from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState


class InOrderMedianPruner(BasePruner):
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

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial stops after its last step."""
        step = trial.last_step
        if step is None or step < self._n_warmup:
            return False
        ended = [
            one
            for one in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if one.number <= trial.number - self._window
        ]
        values = [one.intermediate_values[step] for one in ended if step in one.intermediate_values]
        if len(ended) < self._n_startup or not values:
            return False
        value, middle = trial.intermediate_values[step], median(values)
        return value < middle if study.direction == StudyDirection.MAXIMIZE else value > middle
