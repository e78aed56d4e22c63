"""The run of ``arboost inspect``: summary, trees and parameters of a model; columns of a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from arboost.cli.console import Console, size_text
from arboost.cli.errors import UsageFailure, reading_data, using_parameters
from arboost.cli.model_files import load_model
from arboost.cli.row_record import SPLIT
from arboost.cli.tables import read_table
from arboost.data.source import BY_NAME, FileFormat
from arboost.text import printable, shortened

_MODELS = (".arb", ".json")
_MAGIC = b"\x91AR"
_LONGEST_VALUE = 200  # characters


def inspect(
    console: Console,
    *,
    data: Sequence[str],
    tree: int | None,
    depth: int | None,
    params: bool,
    form: FileFormat,
    date_format: str | None = None,
) -> None:
    """Show a model file, or a table."""
    if depth is not None and tree is None:
        raise UsageFailure("--depth is for --tree. Add --tree N.")
    if form.kind is None and len(data) == 1 and _is_model(data[0]):
        if form != BY_NAME:
            raise UsageFailure(
                f"--delimiter and --decimal are for tables, but {data[0]!r} is a model file."
            )
        if date_format is not None:
            raise UsageFailure(f"--date-format is for tables, but {data[0]!r} is a model file.")
        _show_model(console, data[0], tree, depth, all_params=params)
        return
    for option, given in (("--tree", tree is not None), ("--params", params)):
        if given:
            raise UsageFailure(f"{option} is for model files, but {data[0]!r} is a table.")
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
    trees = hasattr(model, "tree_text")
    if tree is not None:
        if not trees:
            raise UsageFailure(f"{path!r} holds several models: --tree is for models of trees.")
        with using_parameters():
            text = model.tree_text(tree, max_depth=depth if depth is not None else 10)
        console.show(text)
        console.emit({"tree": tree, "text": text})
        return
    if not console.as_json:
        console.show(f"{path}, {size_text(os.path.getsize(path))}")
        if trees:
            console.show(str(model.summary()))
        else:
            console.show(_ensemble_text(model))
    if all_params and trees:
        lines = [f"  {name} = {value!r}" for name, value in sorted(model.params.items())]
        console.show("\n".join(["", "parameters of the fit", *lines]))
    elif all_params and not console.as_json:
        for name, member in model.members.items():
            lines = [f"  {key} = {value!r}" for key, value in sorted(member.params.items())]
            console.show("\n".join(["", f"parameters of the member {name}", *lines]))
    if model.metadata:
        console.show("\n".join(["", "metadata", *_metadata_lines(model.metadata)]))
    console.emit(_model_json(path, model))


def _ensemble_text(model: Any) -> str:
    lines = [repr(model), f"  features  {len(model.feature_names):,}"]
    if model.schema.target is not None:
        lines.append(f"  target    {model.schema.target}")
    lines += [f"  {name}  {member!r}" for name, member in model.members.items()]
    return "\n".join(lines)


def _metadata_lines(metadata: Mapping[str, Any]) -> Iterator[str]:
    for name, value in sorted(metadata.items()):
        text = json.dumps(value, ensure_ascii=False)
        yield f"  {printable(name)} = {shortened(printable(text), _LONGEST_VALUE)}"


def _model_json(path: str, model: Any) -> dict[str, Any]:
    classes = model.classes
    found: dict[str, Any] = {
        "model_file": path,
        "bytes": os.path.getsize(path),
        "kind": model.kind,
        "target": model.schema.target,
        "offset": None if model.schema.offset is None else list(model.schema.offset),
        "features": list(model.feature_names),
        "classes": None if classes is None else classes,
        "metadata": model.metadata,
    }
    if hasattr(model, "n_trees"):
        found |= {
            "trees": model.n_trees,
            "rounds": model.n_rounds,
            "link": model.link,
            "combine": model.combine,
            "parameters": model.params,
            "provenance": _readable(model.provenance),
        }
    else:
        found["members"] = {name: repr(member) for name, member in model.members.items()}
    return found


def _readable(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a fit with the numbers of rows instead of their hashes."""
    found = dict(provenance)
    if isinstance(found.get(SPLIT), dict):
        sets = {name: found[SPLIT].get(name) for name in ("held_out", "trained")}
        found[SPLIT] = {name: one["rows"] for name, one in sets.items() if isinstance(one, dict)}
    return found


def _show_table(console: Console, data: Sequence[str], form: FileFormat, date_format: str) -> None:
    import arboost

    loaded = read_table(console, data, form=form)
    with console.phase("describing columns"), reading_data(), using_parameters():
        described = arboost.describe(loaded.table, date_format=date_format)
    console.show(described.text(console.width))
    console.emit(
        {
            "rows": described.n_rows,
            "columns": [asdict(one) for one in described.columns],
            "notes": list(described.notes),
        }
    )
