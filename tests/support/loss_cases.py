"""All losses, with random problems for each."""

from __future__ import annotations

from arboost.losses import Target, make

LOSSES = {
    "squared_error": make("squared_error"),
    "absolute_error": make("absolute_error"),
    "huber": make("huber", alpha=0.7),
    "quantile": make("quantile", alpha=0.3),
    "quantiles": make("quantile", alpha=[0.1, 0.5, 0.8]),
    "poisson": make("poisson"),
    "gamma": make("gamma"),
    "tweedie": make("tweedie", tweedie_power=1.4),
    "logistic": make("log_loss"),
    "softmax": make("log_loss", n_outputs=4),
    "exponential": make("exponential"),
}


SMOOTH = ["squared_error", "poisson", "gamma", "tweedie", "logistic", "softmax", "exponential"]


ORDERED = ["absolute_error", "quantile", "quantiles", "huber"]


def problem(name, rng, n=40):
    """Return a random target in the loss's domain, weights and scores."""
    loss = LOSSES[name]
    if name in ("logistic", "softmax", "exponential"):
        y = rng.integers(0, max(2, loss.n_outputs), n).astype(float)
    elif name == "poisson":
        y = rng.poisson(2.0, n).astype(float)
    elif name in ("gamma", "tweedie"):
        y = rng.gamma(2.0, 1.0, n) * (rng.random(n) < (0.6 if name == "tweedie" else 1.0))
    else:
        y = rng.normal(size=n) * 10
    return Target(y, rng.uniform(0.5, 2, n)), rng.normal(size=(n, loss.n_outputs)) * 2
