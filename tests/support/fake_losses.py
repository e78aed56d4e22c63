"""Losses for tests of metrics."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeLoss:
    """The part of a loss that metrics need; its value is a number to recognise it by."""

    name: str = "squared_error"
    link: str = "identity"
    n_outputs: int = 1
    tweedie_power: float = 1.3

    def value(self, target, scores, n_threads):
        assert scores.shape == (len(target.y), self.n_outputs)
        return 1000.0 + n_threads


LOGISTIC = FakeLoss("log_loss", "logistic")
SOFTMAX = FakeLoss("log_loss", "softmax", 3)
