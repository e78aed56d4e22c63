"""``arboost report``: one page about a model and its predictions of a table."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import DataFailure, ModelFailure, UsageFailure, failures_as, writing_output
from arboost.cli.model_files import check_output, load_model
from arboost.cli.tables import RowSpec, refuse_input

_OUTPUT = "report.html"
_SUFFIXES = (".html", ".htm")
_MOST_NAMES = 20  # in a message


@click.command(
    cls=opt.SectionedCommand,
    help="Write one page about a model: its data, scores, errors, explanations, rows and trees. "
    "The page is a single file that needs no network.",
)
@opt.model_argument
@opt.scored_rows
@opt.output_option("Page to write; report.html by default.")
@click.option(
    "--train",
    multiple=True,
    type=click.Path(),
    metavar="DATA",
    help="Training table, for drift and baselines; several files are allowed.",
)
@click.option(
    "--compare",
    type=click.Path(),
    metavar="MODEL",
    help="Second model file, shown next to the first.",
)
@opt.column_option(
    "--segment",
    "segments",
    text="Column whose levels or ranges are scored as segments; several are allowed.",
    multiple=True,
)
@click.option("--title", metavar="TEXT", help="Title of the page.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@opt.jobs_option
@opt.console_options()
def report(
    console: Console,
    *,
    model: str,
    rows: RowSpec,
    output: str | None,
    compare: str | None,
    segments: tuple[str, ...],
    **options: Any,
) -> None:
    """Write one page about a model and its predictions of a table."""
    from arboost.cli.rows import read_scored_rows

    output = _OUTPUT if output is None else output
    check_output(output, _SUFFIXES)
    loaded = _load(model)
    second = None if compare is None else _load(compare)
    columns = opt.split_names(segments)
    for name in columns:
        if name not in loaded.feature_names:
            known = ", ".join(map(repr, loaded.feature_names[:_MOST_NAMES]))
            raise UsageFailure(
                f"--segment names {name!r}, which is not a feature of the model. Use one of "
                f"{known}."
            )
    scored = read_scored_rows(console, loaded, rows)
    refuse_input(output, [model, *scored.source.files.paths, *filter(None, [compare])])
    train = _training_table(console, loaded, scored.target, output, rows, options["train"])
    n_rows = scored.table.num_rows
    with console.phase(f"reporting on {n_rows:,} rows") as phase:
        with failures_as(DataFailure):
            page = loaded.report(
                scored.table,
                scored.target,
                sample_weight=scored.weights,
                offset=scored.offset or None,
                X_train=train,
                compare=second,
                segments=columns or None,
                title=options["title"],
                n_jobs=options["jobs"],
            )
        notes = page.payload["data"]["notes"]
        for note in notes:
            console.say(note)
        if scored.note:
            notes.insert(0, scored.note)
        with writing_output(output):
            page.save(output)
        size = os.path.getsize(output)
        phase.result = f"wrote {output} ({size_text(size)}) in {seconds_text(phase.seconds)}"
    if options["opens"]:
        _open(console, output)
    console.emit(
        {
            "model_file": model,
            "target": scored.target,
            "rows": page.payload["data"]["n_rows"],
            "held_out": rows.held_out,
            "trained_share": scored.trained_share,
            "output": output,
            "bytes": size,
            "scores": page.scores,
            "seconds": page.seconds,
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


def _training_table(
    console: Console, model: Any, target: str, output: str, rows: RowSpec, data: tuple[str, ...]
) -> Any:
    """Training table with the columns of the model and the target; None without --train."""
    from arboost.cli.rows import read_model_rows

    if not data:
        return None
    spec = RowSpec(data=data, form=rows.form, target=target)
    table, source = read_model_rows(console, model, spec)
    refuse_input(output, source.files.paths)
    return table


def _open(console: Console, path: str) -> None:
    if not webbrowser.open(Path(path).resolve().as_uri()):
        console.warn(f"no browser could be started; open {path} yourself.")
