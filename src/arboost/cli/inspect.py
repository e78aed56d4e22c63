"""``arboost inspect``: a model file or a table; ``arboost convert``: other kinds of model files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, ModelFailure, UsageFailure, failures_as, writing_output
from arboost.cli.model_files import SPLIT, check_output, load_model
from arboost.cli.tables import TableFormat, open_table, refuse_input
from arboost.text import printable, shortened, size_text

_MODELS = (".arb", ".json")
_MAGIC = b"\x91AR"
_LONGEST_VALUE = 200  # characters
_DEPTH = 10  # of the deepest nodes of a tree
# Suffix of the output of convert -> kind of file.
_KINDS = {".arb": "arboost", ".json": "readable JSON", ".h": "C header", ".onnx": "ONNX"}


@click.command(
    cls=opt.SectionedCommand,
    help="Show the content of a model file (.arb, .json), or the columns of a table as a fit "
    "would use them.",
)
@opt.table_arguments
@click.option("--tree", type=int, metavar="N", help="Show tree N, from 0.")
@click.option("--depth", type=int, metavar="N", help="With --tree: depth of the deepest nodes.")
@click.option("--params", is_flag=True, help="Show all parameters of the fit.")
@click.option(
    "--date-format",
    metavar="FORMAT",
    help="Format of dates in strings of a table: iso, dayfirst, monthfirst, or as in %d/%m/%Y.",
)
@opt.input_options
@opt.console_options()
def inspect(
    console: Console,
    *,
    data: tuple[str, ...],
    tree: int | None,
    depth: int | None,
    params: bool,  # named by click
    form: TableFormat,
    date_format: str | None,
) -> None:
    """Show the content of a model file, or the columns of a table."""
    if depth is not None and tree is None:
        raise UsageFailure("--depth is for --tree. Add --tree N.")
    path = data[0]
    is_model = form.format is None and len(data) == 1 and _is_model(path)
    kinds = ("tables", "model file") if is_model else ("model files", "table")
    of_tables = {
        "--delimiter": form.delimiter,
        "--decimal": form.decimal,
        "--date-format": date_format,
    }
    of_models = {"--tree": tree, "--params": params or None}
    for option, value in (of_tables if is_model else of_models).items():
        if value is not None:
            raise UsageFailure(f"{option} is for {kinds[0]}, but {path!r} is a {kinds[1]}.")
    if is_model:
        _show_model(console, path, tree, depth, all_params=params)
    else:
        _show_table(console, data, form, date_format or "auto")


def _is_model(path: str) -> bool:
    if path.lower().endswith(_MODELS):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _show_model(
    console: Console, path: str, tree: int | None, depth: int | None, *, all_params: bool
) -> None:
    model = load_model(path)
    has_trees = hasattr(model, "tree_text")
    if tree is not None:
        if not has_trees:
            raise UsageFailure(f"{path!r} holds several models: --tree is for models of trees.")
        with failures_as(UsageFailure):
            text = model.tree_text(tree, max_depth=_DEPTH if depth is None else depth)
        console.show(text)
        console.emit({"tree": tree, "text": text})
        return
    console.show(f"{path}, {size_text(os.path.getsize(path))}")
    console.show(str(model.summary()) if has_trees else _ensemble_text(model))
    if all_params:
        owners = {"fit": model} if has_trees else model.members
        for name, owner in owners.items():
            title = "parameters of the fit" if has_trees else f"parameters of the member {name}"
            lines = [f"  {key} = {value!r}" for key, value in sorted(owner.params.items())]
            console.show("\n".join(["", title, *lines]))
    if model.metadata:
        texts = {
            name: json.dumps(value, ensure_ascii=False) for name, value in model.metadata.items()
        }
        lines = [
            f"  {printable(name)} = {shortened(printable(text), _LONGEST_VALUE)}"
            for name, text in sorted(texts.items())
        ]
        console.show("\n".join(["", "metadata", *lines]))
    console.emit(_model_json(path, model))


def _ensemble_text(model: Any) -> str:
    lines = [repr(model), f"  features  {len(model.feature_names):,}"]
    if model.schema.target is not None:
        lines.append(f"  target    {model.schema.target}")
    lines += [f"  {name}  {member!r}" for name, member in model.members.items()]
    return "\n".join(lines)


def _model_json(path: str, model: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "model_file": path,
        "bytes": os.path.getsize(path),
        "kind": model.kind,
        "target": model.schema.target,
        "offset": model.schema.offset,
        "features": model.feature_names,
        "classes": model.classes,
        "metadata": model.metadata,
    }
    if not hasattr(model, "n_trees"):
        return facts | {"members": {name: repr(member) for name, member in model.members.items()}}
    provenance = dict(model.provenance)
    if isinstance(provenance.get(SPLIT), dict):  # numbers of rows instead of their hashes
        sets = {name: provenance[SPLIT].get(name) for name in ("held_out", "trained")}
        provenance[SPLIT] = {name: rows["rows"] for name, rows in sets.items() if rows}
    return facts | {
        "trees": model.n_trees,
        "rounds": model.n_rounds,
        "link": model.link,
        "combine": model.combine,
        "parameters": model.params,
        "provenance": provenance,
    }


def _show_table(console: Console, data: Sequence[str], form: TableFormat, date_format: str) -> None:
    import arboost

    table = open_table(console, data, form).read()
    with console.phase("describing columns"), failures_as(DataFailure):
        description = arboost.describe(table, date_format=date_format)
    console.show(description.text(console.width))
    console.emit(
        {
            "rows": description.n_rows,
            "columns": [asdict(column) for column in description.columns],
            "notes": description.notes,
        }
    )


@click.command(
    cls=opt.SectionedCommand,
    help="Write a model as another kind of file, by its suffix: "
    + ", ".join(f"{suffix} ({kind})" for suffix, kind in _KINDS.items())
    + ".",
)
@opt.model_argument
@click.argument("output", type=click.Path(), metavar="OUTPUT")
@click.option("--name", metavar="NAME", help="With .h: prefix of functions and macros.")
@opt.console_options(has_json=False)
def convert(console: Console, *, model: str, output: str, name: str | None) -> None:
    """Write a model as another kind of file."""
    stem, suffix = os.path.splitext(output)
    suffix = suffix.lower()
    check_output(output, tuple(_KINDS))
    if name is not None and suffix != ".h":
        raise UsageFailure(f"--name is for C headers (.h), but the output is {output!r}.")
    refuse_input(output, [model])
    loaded = load_model(model)
    if suffix != ".arb" and not hasattr(loaded, "to_c"):
        raise ModelFailure(
            "an ensemble of models has no JSON, C or ONNX form. Use .arb, or train a model of "
            "trees such as gradient_boosting."
        )
    with console.phase(f"writing {output}"), failures_as(ModelFailure), writing_output(output):
        if suffix == ".onnx":
            loaded.to_onnx(output)
        elif suffix == ".h":
            loaded.to_c(output, name=name or os.path.basename(stem))
        else:
            loaded.save(output)
    console.say(f"wrote {output}, {size_text(os.path.getsize(output))}")
