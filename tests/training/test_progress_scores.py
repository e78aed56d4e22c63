"""Scores of the progress bar: whole at every width of a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import GradientBoostingClassifier
from arboost.progress import Bar
from support.terminals import SCORES, look_at, work


@pytest.mark.parametrize(
    ("columns", "scores"),
    [
        (60, "log_loss 0.31234"),
        (90, "log_loss 0.31234, auc 0.90000"),
        (120, "train: log_loss 0.10000, validation: log_loss 0.31234, auc 0.90000"),
    ],
)
def test_as_many_scores_as_fit(terminal, clock, monkeypatch, columns, scores):
    look_at(monkeypatch, terminal, columns)
    with Bar(1000, "fitting") as bar:
        clock.now += 100.0
        bar.show(1)
        clock.now += 1.0
        bar.show(500, {"train": {"log_loss": 0.1}} | SCORES)
        (line,) = terminal.shown()
    assert len(line) < columns
    assert line.startswith("fitting |###")
    assert line.endswith(f"500/1000 [01:41<01:41, {scores}]")


@pytest.mark.parametrize("columns", [14, 30, 40])
def test_no_line_wraps(terminal, clock, monkeypatch, columns):
    look_at(monkeypatch, terminal, columns)
    work(clock, 5, 1.0, results=SCORES)
    lengths = [len(line) for line in terminal.getvalue().replace("\n", "").split("\r")]
    assert max(lengths) == columns - 1


METRICS = ["log_loss", "balanced_accuracy", "auc"]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("n_metrics", [1, 3])
def test_scores_of_fits_are_never_cut(terminal, monkeypatch, rng, columns, n_metrics):
    """Fits with two evaluation sets: the score of the last one is whole at every width."""
    look_at(monkeypatch, terminal, columns)
    for name in ("_DELAY", "_INTERVAL"):
        monkeypatch.setattr(f"arboost.progress.{name}", 0.0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = GradientBoostingClassifier(n_estimators=3, eval_metric=METRICS[:n_metrics])
    sets = [(X, y), (X[::2], y[::2])]
    model.fit(X, y, eval_set=sets, eval_names=["train", "a very long name"])
    line = terminal.shown()[0]
    assert len(line) < columns
    assert line.endswith("]")
    last = model.evals_result_["a very long name"]
    shown = METRICS[:n_metrics] if columns > 100 else METRICS[:1]
    for metric in shown:
        assert f"{metric} {last[metric][-1]:#.5g}" in line


def test_names_with_braces(terminal, clock):
    work(clock, 3, 1.0, results={"validation": {"{of} mine": 0.5}})
    assert "{of} mine 0.50000]" in terminal.shown()[0]
