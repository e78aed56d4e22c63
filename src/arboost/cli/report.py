"""``arboost report``: one page about a model and its predictions of a table."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import DataFailure, UsageFailure, failures_as, writing_output
from arboost.cli.model_files import check_output, load_model
from arboost.cli.tables import RowSpec, open_table, refuse_input
from arboost.text import counted, size_text

_MOST_NAMES = 20  # in a message


@click.command(
    cls=opt.SectionedCommand,
    help="Write one page about a model: its data, scores, errors, explanations, rows and trees. "
    "The page is a single file that needs no network.",
)
@opt.model_argument
@opt.scored_rows
@opt.output_option("Page to write.", default="report.html", show_default=True)
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
    output: str,
    compare: str | None,
    segments: tuple[str, ...],
    **options: Any,
) -> None:
    """Write one page about a model and its predictions of a table."""
    from arboost.cli.rows import read_model_rows, read_scored_rows

    check_output(output, (".html", ".htm"))
    loaded = load_model(model, has_target=True)
    second = None if compare is None else load_model(compare, has_target=True)
    columns = opt.split_names(segments)
    for name in columns:
        if name not in loaded.feature_names:
            known = ", ".join(map(repr, loaded.feature_names[:_MOST_NAMES]))
            raise UsageFailure(
                f"--segment names {name!r}, which is not a feature of the model. Use one of "
                f"{known}."
            )
    scored = read_scored_rows(console, loaded, rows)
    inputs, train = [model, *filter(None, [compare]), *scored.source.files.paths], None
    if options["train"]:
        spec = RowSpec(data=options["train"], form=rows.form, target=scored.target)
        source = open_table(console, spec.data, spec.form)
        inputs += source.files.paths
        train = read_model_rows(loaded, spec, source)
    refuse_input(output, inputs)
    count = counted(scored.table.num_rows, "row")
    with console.phase(f"reporting on {count}") as phase:
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
    if options["opens"] and not webbrowser.open(Path(output).resolve().as_uri()):
        console.warn(f"no browser could be started; open {output} yourself.")
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
