"""Ensemble <-> versioned bytes of a `container`; the model file of each member is a section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.formats.budget import Budget
from arboost.formats.container import errors_named, pack, unpack
from arboost.formats.model_file import (
    ENSEMBLE,
    describe_classes,
    describe_schema,
    from_bytes,
    read_classes,
    read_schema,
    to_bytes,
)
from arboost.model.ensemble import Ensemble, EnsembleMember, LinearModel
from arboost.model.metadata import check_metadata
from arboost.model.model import Model

__all__ = ["ensemble_bytes", "read_ensemble"]

_FIELDS = {"kind": str, "n_columns": int, "divisor": float, "passthrough": bool}
_DICTS = ("provenance", "metadata")
_INDICES = ("features", "taken", "places")


def ensemble_bytes(ensemble: Ensemble) -> bytes:
    """Return the ensemble as the bytes of a file."""
    arrays: dict[str, NDArray[Any]] = {}
    header: dict[str, Any] = {name: getattr(ensemble, name) for name in _FIELDS}
    header["schema"] = describe_schema(ensemble.schema, arrays)
    header["classes"] = describe_classes(ensemble.classes, arrays)
    header["members"] = []
    for i, member in enumerate(ensemble.members):
        described = {"name": member.name, "output": member.output, "weight": member.weight}
        header["members"].append(described)
        arrays[f"member {i}"] = _section(member.model)
        arrays |= {f"member {i} {name}": getattr(member, name) for name in _INDICES}
    check_metadata(ensemble.metadata)
    for name in _DICTS:
        if getattr(ensemble, name):
            header[name] = getattr(ensemble, name)
    if isinstance(ensemble.final, LinearModel):
        header["final"] = ensemble.final.link
        arrays |= {"coef": ensemble.final.coef, "intercept": ensemble.final.intercept}
    elif ensemble.final is not None:
        header["final"] = "model"
        arrays["final"] = _section(ensemble.final)
    return pack(ENSEMBLE, header, arrays)


def read_ensemble(data: bytes, name: str) -> Ensemble:
    """Return the ensemble in the bytes of a file, validated; error messages call it `name`."""
    with errors_named(ENSEMBLE, name):
        header, arrays = unpack(ENSEMBLE, data)
        values = {name: header[name] for name in _FIELDS}
        for name_, expected in _FIELDS.items():
            if type(values[name_]) is not expected:
                raise TypeError(f"{name_}={values[name_]!r}")
        for name_ in _DICTS:
            values[name_] = header.get(name_, {})
            if type(values[name_]) is not dict:
                raise TypeError(f"{name_}={values[name_]!r}")
        budget = Budget(len(data))
        classes = read_classes(header["classes"], arrays, budget)
        if isinstance(classes, tuple):
            raise TypeError("classes of several targets")
        ensemble = Ensemble(
            schema=read_schema(header["schema"], arrays, budget),
            classes=classes,
            members=tuple(
                _read_member(i, one, arrays, budget) for i, one in enumerate(header["members"])
            ),
            final=_read_final(header.get("final"), arrays, budget),
            **values,
        )
        ensemble.validate()
    return ensemble


def _section(model: Model) -> NDArray[np.uint8]:
    return np.frombuffer(to_bytes(model), np.uint8)


def _read_model(array: NDArray[Any], budget: Budget) -> Model:
    if array.dtype != np.uint8:
        raise TypeError(f"a model of type {array.dtype}")
    return from_bytes(array.tobytes(), "a member", budget)


def _read_member(
    i: int, described: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], budget: Budget
) -> EnsembleMember:
    name, output, weight = described["name"], described["output"], described["weight"]
    if type(name) is not str or type(output) is not str or type(weight) is not float:
        raise TypeError(f"the member {described!r}")
    indices = {part: arrays[f"member {i} {part}"] for part in _INDICES}
    if any(one.dtype != np.int64 or one.ndim != 1 for one in indices.values()):
        raise TypeError(f"indices of the member {name!r}")
    model = _read_model(arrays[f"member {i}"], budget)
    return EnsembleMember(name=name, model=model, output=output, weight=weight, **indices)


def _read_final(
    described: object, arrays: Mapping[str, NDArray[Any]], budget: Budget
) -> Model | LinearModel | None:
    if described is None:
        return None
    if described == "model":
        return _read_model(arrays["final"], budget)
    coef, intercept = arrays["coef"], arrays["intercept"]
    is_linear = coef.dtype == intercept.dtype == np.float64 and intercept.ndim == 1
    if type(described) is not str or not is_linear:
        raise TypeError(f"the final model {described!r}")
    return LinearModel(coef, intercept, described)
