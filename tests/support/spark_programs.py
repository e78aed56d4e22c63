"""Estimators that break tasks of Spark; tasks import them from here."""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path
from typing import Any

from arboost import GradientBoostingClassifier


class DyingClassifier(GradientBoostingClassifier):
    """A booster whose last task gets a signal, as often as the folder has files to delete."""

    folder: str = ""
    signal: int = signal.SIGKILL

    @functools.wraps(GradientBoostingClassifier.fit)
    def fit(self, X: Any, *arguments: Any, **options: Any):
        if X.workers.rank == X.workers.size - 1:
            options["callbacks"] = [*options["callbacks"], self._die]
        return super().fit(X, *arguments, **options)

    def _die(self, _round: object) -> None:
        for file in sorted(Path(self.folder).glob("*"))[:1]:
            file.unlink()
            os.kill(os.getpid(), self.signal)


class FailingClassifier(GradientBoostingClassifier):
    """A booster that fails on the second task only, in its second round."""

    @functools.wraps(GradientBoostingClassifier.fit)
    def fit(self, X: Any, *arguments: Any, **options: Any):
        if X.workers.rank == 1:
            options["callbacks"] = [*options["callbacks"], self._fail]
        return super().fit(X, *arguments, **options)

    def _fail(self, _round: object) -> None:
        raise KeyError("only here")
