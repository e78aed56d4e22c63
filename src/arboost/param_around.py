"""Parameters of what is around the training loop: validation and early stopping, threads, seed."""

from __future__ import annotations

from arboost.param_kinds import Choice, Fraction, Integer, Real, Seed, by_name
from arboost.param_structures import Metrics

__all__ = ["RUN", "VALIDATION"]

VALIDATION = by_name(
    Metrics(
        name="eval_metric",
        default=None,
        text="What is measured on the validation data after each round, the first of several for "
        "early stopping; None is the loss itself.",
        advice="Use eval_metric=None for the loss.",
    ),
    Integer(
        name="n_iter_no_change",
        default=None,
        low=1,
        optional=True,
        text="Early stopping: rounds without a better validation score after which training stops "
        "and the best round is kept; None trains all rounds.",
        advice="Use n_iter_no_change=None for no early stopping.",
    ),
    Real(
        name="tol",
        default=0.0,
        low=0.0,
        text="Early stopping: how much better a score must be to count as better.",
    ),
    Fraction(
        name="validation_fraction",
        default=0.1,
        low_open=True,
        high_open=True,
        text="Early stopping without X_val: share of the training rows that is set aside.",
    ),
    Choice(
        name="validation_split",
        default="random",
        options=("random", "group", "time"),
        text="Early stopping without X_val: which rows are set aside: random ones (for a "
        "classifier of every class its share), whole groups, or the last rows.",
    ),
    Real(
        name="max_time",
        default=None,
        low=0.0,
        low_open=True,
        optional=True,
        text="Seconds after which no further round is begun; None sets no limit.",
        advice="Use max_time=None for no limit.",
    ),
)

RUN = by_name(
    Integer(
        name="n_jobs",
        default=None,
        low=1,
        high=1024,  # far more than help; a slip of more could exhaust the machine
        also=(-1,),
        optional=True,
        text="Number of threads; None and -1 take all that this process may use. The model does "
        "not depend on it.",
        advice="Use n_jobs=None for all CPUs.",
    ),
    Seed(
        name="random_state",
        default=0,
        text="Seed of every random choice; None takes a new one for each fit.",
        advice="Use random_state=0 for the same model every time.",
    ),
    Integer(
        name="verbose",
        default=1,
        low=0,
        text="Above 0, fits of more than about a second draw a progress bar in terminals and "
        "notebooks.",
        advice="Use verbose=0 for no progress bar.",
    ),
)
