"""Scores of the progress bar: whole at every width of a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import GradientBoostingClassifier
from arboost.progress import Bar
from support.terminals import SCORES, look_at, work


@pytest.mark.parametrize(
    ("columns", "left", "name"),
    [(60, "500", ""), (80, "fitting |", ""), (120, "fitting |", "validation: ")],
)
def test_scores_are_never_cut(terminal, clock, monkeypatch, columns, left, name):
    look_at(monkeypatch, terminal, columns)
    with Bar(1000, "fitting") as bar:
        clock.now += 100.0
        bar.show(1)
        clock.now += 1.0
        bar.show(500, {"train": {"log_loss": 0.1}} | SCORES if name else SCORES)
        (line,) = terminal.shown()
    assert len(line) < columns
    assert line.startswith(left)
    assert line.endswith(f"{name}log_loss 0.31234, auc 0.90000]")
    assert "500/1000 [01:41<01:41, " in line


def test_narrow_terminal(terminal, clock, monkeypatch):
    """No bar, no label and no times, and no line that wraps; then a shorter name of the metric."""
    look_at(monkeypatch, terminal, 40)
    results = {"train": {"rmse": 2.0}, "validation": {"a long name of a metric": 1.0, "mae": 2.0}}
    work(clock, 5, 1.0, results=results)
    assert terminal.shown() == ["5/5 [a long name of a metric 1.0000]", ""]
    look_at(monkeypatch, terminal, 30)
    work(clock, 5, 1.0, results=results)
    assert terminal.shown()[-2:] == ["5/5 [a long name of… 1.0000]", ""]
    look_at(monkeypatch, terminal, 14)
    work(clock, 5, 1.0, results=results)
    assert terminal.shown()[-2:] == ["5/5 [1.0000]", ""]
    lengths = [len(one) for one in terminal.getvalue().replace("\n", "").split("\r")]
    assert max(lengths) <= 39


METRICS = ["log_loss", "balanced_accuracy", "auc"]


@pytest.mark.parametrize("columns", [30, 60, 80, 120])
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
    shown = METRICS[:n_metrics] if columns >= 80 else METRICS[:1]
    for metric in shown:
        assert f"{metric} {last[metric][-1]:#.5g}" in line


def test_names_with_braces(terminal, clock):
    work(clock, 3, 1.0, results={"validation": {"{of} mine": 0.5}})
    assert "{of} mine 0.50000]" in terminal.shown()[0]


def test_label_is_dropped_before_the_values(terminal, clock, monkeypatch):
    look_at(monkeypatch, terminal, 45)
    work(clock, 4, 1.0, results=SCORES)
    assert terminal.shown() == ["4/4 [00:04, log_loss 0.31234, auc 0.90000]", ""]
