"""The run of ``arboost report``: models and tables of files -> one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import (
    ModelFailure,
    UsageFailure,
    reading_data,
    writing_output,
)
from arboost.cli.model_files import check_output, find_offset, find_target, load_model, read_rows
from arboost.cli.options import split_names
from arboost.cli.row_record import choose_rows
from arboost.cli.rows import check_weights
from arboost.cli.tables import refuse_input

_OUTPUT = "report.html"
_SUFFIXES = (".html", ".htm")


def report(
    console: Console, *, model: str, data: Sequence[str], target: str | None, **options: Any
) -> None:
    """Write the page; options are those of the command."""
    output = _OUTPUT if options["output"] is None else options["output"]
    check_output(output, _SUFFIXES)
    loaded = _load(model)
    other = None if options["compare"] is None else _load(options["compare"])
    name = find_target(loaded, target)
    segments = split_names(options["segments"])
    _check_segments(loaded, segments)
    offset = find_offset(loaded, options["offset"])
    given = [name, options["weight"]]
    rows = read_rows(console, loaded, data, given, options["form"], offset)
    others = [model, *rows.paths, *([] if options["compare"] is None else [options["compare"]])]
    refuse_input(output, others)
    chosen = choose_rows(console, loaded, rows, name, held_out=options["held_out"])
    table, weight = chosen.loaded.table, None
    if options["weight"] is not None:
        check_weights(table.column(options["weight"]), options["weight"])
        weight = table.column(options["weight"]).to_numpy()
        if options["weight"] not in loaded.feature_names:
            table = table.drop_columns([options["weight"]])
    train = _training(console, loaded, name, output, options)
    with console.phase(f"reporting on {table.num_rows:,} rows") as phase:
        with reading_data():
            found = loaded.report(
                table,
                name,
                sample_weight=weight,
                offset=offset or None,
                X_train=train,
                compare=other,
                segments=segments or None,
                title=options["title"],
                n_jobs=options["jobs"],
            )
        notes = found.payload["data"]["notes"]
        for note in notes:
            console.say(note)
        if chosen.note:
            notes.insert(0, chosen.note)
        with writing_output(output):
            found.save(output)
        size = os.path.getsize(output)
        phase.result = f"wrote {output} ({size_text(size)}) in {seconds_text(phase.seconds)}"
    if options["opens"]:
        _open(console, output)
    console.emit(
        {
            "model_file": model,
            "target": name,
            "rows": found.payload["data"]["n_rows"],
            "held_out": options["held_out"],
            "trained_share": chosen.trained_share,
            "output": output,
            "bytes": size,
            "scores": found.scores,
            "seconds": found.seconds,
        }
    )


def _load(path: str) -> Any:
    model = load_model(path)
    if getattr(model, "targets", ()):
        raise ModelFailure(
            f"the model {path!r} has several targets, and a page shows one. Use "
            "model.report(X, y, target_index=0) in Python."
        )
    return model


def _check_segments(model: Any, segments: Sequence[str]) -> None:
    unknown = [name for name in segments if name not in model.feature_names]
    if unknown:
        names = ", ".join(repr(name) for name in model.feature_names[:20])
        raise UsageFailure(
            f"--segment names {unknown[0]!r}, which is no feature of the model. Use one of {names}."
        )


def _training(console: Console, model: Any, target: str, output: str, options: Any) -> Any:
    """Return the training table with the columns of the model, and the target if it is there."""
    if not options["train"]:
        return None
    rows = read_rows(console, model, options["train"], [target], options["form"])
    refuse_input(output, rows.paths)
    return rows.table


def _open(console: Console, path: str) -> None:
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(path).resolve().as_uri()):
        console.warn(f"no browser could be started; open {path} yourself.")
