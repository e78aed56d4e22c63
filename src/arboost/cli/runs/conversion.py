"""The run of ``arboost convert``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from arboost.cli.console import Console, size_text
from arboost.cli.errors import ModelFailure, UsageFailure, writing_output
from arboost.cli.model_files import check_output, load_model
from arboost.cli.tables import refuse_input


def convert(
    console: Console, path: str, output: str, name: str | None, suffixes: Sequence[str]
) -> None:
    """Write a model to a file whose suffix tells its kind."""
    suffix = os.path.splitext(output.lower())[1]
    check_output(output, suffixes)
    if name is not None and suffix != ".h":
        raise UsageFailure(f"--name is for C headers (.h), but the output is {output!r}.")
    refuse_input(output, [path])
    model = load_model(path)
    with console.phase(f"writing {output}"):
        try:
            with writing_output(output):
                _write(model, output, suffix, name)
        except (ValueError, TypeError, NotImplementedError) as error:
            raise ModelFailure(str(error)) from error
    console.say(f"wrote {output}, {size_text(os.path.getsize(output))}")


def _write(model: Any, output: str, suffix: str, name: str | None) -> None:
    if suffix == ".arb":
        model.save(output)
        return
    if not hasattr(model, "to_c"):
        raise ModelFailure(
            "an ensemble of models has no JSON, C or ONNX form. Use .arb, or train a model of "
            "trees such as gradient_boosting."
        )
    if suffix == ".json":
        model.save(output)
        return
    if suffix == ".onnx":
        model.to_onnx(output)
        return
    model.to_c(output, name=name or os.path.basename(output)[: -len(suffix)])
