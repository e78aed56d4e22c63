"""Continued training: the model to continue, its checks, and the number of rounds to add."""

from __future__ import annotations

import os
from typing import Any

from arboost.data.table import Table
from arboost.errors import warn_caller
from arboost.model.model import Model
from arboost.model.predict import table_scores
from arboost.params.auto import AUTO
from arboost.predictor import load
from arboost.training.inputs import EngineRows

__all__ = ["check_continues", "continued_rows", "like_previous", "n_to_add", "previous_model"]


def previous_model(init_model: object) -> Model:
    """Return the model of an estimator, a Predictor or a path."""
    if isinstance(init_model, Model):
        return init_model
    if isinstance(init_model, str | os.PathLike):
        loaded = load(init_model)
        if isinstance(loaded, Model):
            return loaded
        raise TypeError(
            f"init_model={os.fsdecode(init_model)!r} is not allowed: the file holds an ensemble of "
            "several members, and only a booster can be continued. Pass the file of one."
        )
    if hasattr(init_model, "fit") and not isinstance(init_model, type):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(init_model)
        model = getattr(init_model, "model_", None)
        if isinstance(model, Model):
            whole = getattr(init_model, "_engine_model", None)
            return model if whole is None else whole("init_model")
    raise TypeError(
        f"init_model={init_model!r} ({type(init_model).__name__}) is not allowed: it must be a "
        "fitted estimator of arboost, an arboost.Predictor, or the path of a model file. Pass for "
        "example the estimator whose training is to go on."
    )


def check_continues(
    model: Model | None, kind: str, params: dict[str, Any], link: str, n_outputs: int
) -> None:
    """Raise ValueError unless trees of this fit can be added to the model's, if there is one."""
    if model is None:
        return
    if params["base_score"] is not None:
        raise ValueError(
            f"base_score={params['base_score']!r} is not allowed with init_model, whose scores the "
            "training starts from. Use base_score=None."
        )
    if model.kind != kind:
        raise ValueError(f"init_model is a {model.kind}, but this is a {kind}. Use a {model.kind}.")
    _check_loss(model, params["loss"])
    if (model.link, model.n_outputs) != (link, n_outputs):
        raise ValueError(
            f"init_model gives {_scores(model.n_outputs)} with the link {model.link!r}, but this "
            f"fit would add {_scores(n_outputs)} with the link {link!r}. Use the loss of "
            f"init_model, which was {_loss_name(model)}."
        )
    same = ("num_parallel_tree", "multi_strategy" if kind == "classifier" else "alpha")
    for name in same if n_outputs > 1 else same[:1]:
        was = model.params.get(name, 1)  # files of version 0.1.0 knew no parallel trees
        if was != params[name]:
            raise ValueError(
                f"{name}={params[name]!r} is not allowed: init_model was fitted with "
                f"{name}={was!r}, and all rounds of a model must be alike. Make the two equal."
            )


def like_previous(params: dict[str, Any], model: Model | None) -> dict[str, Any]:
    """Return the parameters with the kind of trees of a continued model in place of "auto"."""
    if model is None or params.get("multi_strategy") != AUTO:
        return params
    return params | {"multi_strategy": model.params.get("multi_strategy", AUTO)}


def continued_rows(
    train: EngineRows, validation: tuple[EngineRows, ...], model: Model | None, n_threads: int
) -> tuple[EngineRows, tuple[EngineRows, ...]]:
    """Return the rows with the raw scores of the model whose training is continued, if any."""
    if model is None:
        return train, validation

    def scored(rows: EngineRows) -> EngineRows:
        assert isinstance(rows.source, Table)  # a Dataset was refused before
        return rows.started(table_scores(model, rows.source, n_threads=n_threads))

    return scored(train), tuple(map(scored, validation))


def n_to_add(n_estimators: int, n_kept: int, what: str) -> int:
    """Return the number of trees or members that a warm start adds to those that it keeps.

    Parameters
    ----------
    n_estimators, n_kept : int
    what : str
        Their name in messages.
    """
    if n_estimators < n_kept:
        raise ValueError(
            f"n_estimators={n_estimators} is not allowed: warm_start=True keeps the {n_kept} "
            f"{what} there are. Use a larger number, or warm_start=False to start anew."
        )
    if n_estimators == n_kept:
        warn_caller(
            f"n_estimators={n_estimators} is the number of {what} that warm_start=True keeps, so "
            "that none is added. Use a larger number, or warm_start=False to start anew."
        )
    return n_estimators - n_kept


def _check_loss(model: Model, loss: Any) -> None:
    recorded = model.params.get("loss")
    if not isinstance(recorded, dict):
        return
    custom = recorded["custom"]
    if isinstance(loss, str):
        raise ValueError(
            f"init_model was trained with the custom loss {custom!r}, and a model file keeps its "
            f"name only; loss={loss!r} is another. Pass that arboost.CustomLoss as loss."
        )
    if loss.name != custom:
        raise ValueError(
            f"init_model was trained with the custom loss {custom!r}, but loss is {loss.name!r}. "
            "Pass the same loss, or give it the same name."
        )


def _loss_name(model: Model) -> str:
    recorded = model.params.get("loss")
    return f"custom: {recorded['custom']!r}" if isinstance(recorded, dict) else repr(recorded)


def _scores(n_outputs: int) -> str:
    return "1 score a row" if n_outputs == 1 else f"{n_outputs} scores a row"
