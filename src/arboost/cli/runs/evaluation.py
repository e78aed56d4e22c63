"""The run of ``arboost evaluate``: scores with intervals, and a table of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import ModelFailure, reading_data
from arboost.cli.model_files import find_offset, find_target, load_model, read_rows
from arboost.cli.row_record import choose_rows
from arboost.cli.rows import check_weights
from arboost.cli.scores import (
    Scored,
    evaluate_rows,
    metric_scores,
    number_text,
    score_json,
    score_tables,
)
from arboost.cli.tables import Loaded

_MOST_CLASSES = 50  # lines of the table of classes


def evaluate(
    console: Console, *, model: str, data: Sequence[str], target: str | None, **options: Any
) -> None:
    """Score a model; options are those of the command."""
    loaded = load_model(model, options["device"])
    if getattr(loaded, "targets", ()):
        raise ModelFailure("the model has several targets, which evaluate cannot score.")
    name = find_target(loaded, target)
    offset = find_offset(loaded, options["offset"])
    others = [name, options["weight"]]
    rows = read_rows(console, loaded, data, others, options["form"], offset)
    chosen = choose_rows(console, loaded, rows, name, held_out=options["held_out"])
    rows, weight = chosen.loaded, None
    if options["weight"] is not None:
        check_weights(rows.table.column(options["weight"]), options["weight"])
        weight = rows.table.column(options["weight"]).to_numpy()
        if options["weight"] not in loaded.feature_names:
            table = rows.table.drop_columns([options["weight"]])
            rows = Loaded(table, rows.label, rows.seconds, rows.paths)
    with console.phase(f"scoring {rows.table.num_rows:,} rows") as phase, reading_data():
        found = evaluate_rows(
            loaded, rows.table, name, weight=weight, offset=offset, n_jobs=options["jobs"]
        )
        for note in found.inputs.notes:
            console.say(note)
        scores = [*found.scores, *metric_scores(found.inputs, options["metrics"])]
        classes = _of_classes(found.inputs)
        phase.result = f"scored in {seconds_text(phase.seconds)}"
    kind = "held-out rows" if options["held_out"] else "rows"
    title = f"{model} on {rows.label}, {rows.table.num_rows:,} {kind}"
    _show(console, title, scores, classes, found.baseline_text)
    console.emit(
        {
            "model_file": model,
            "target": name,
            "rows": found.inputs.n_rows,
            "held_out": options["held_out"],
            "trained_share": chosen.trained_share,
            "scores": score_json(scores),
            "baseline": found.baseline_text,
            "classes": classes,
        }
    )


def _show(
    console: Console,
    title: str,
    scores: list[Scored],
    classes: list[dict[str, Any]],
    baseline_text: str,
) -> None:
    if console.as_json:
        return
    console.show_widest(*score_tables(scores, title, baseline_text))
    if classes:
        console.show(_class_table(classes))


def _of_classes(inputs: Any) -> list[dict[str, Any]]:
    """Return precision, recall and F1 of each class, in the order of the model."""
    if inputs.classes is None:
        return []
    n_classes = len(inputs.classes)
    truth, chosen, weight = inputs.truth, inputs.predicted[0].codes, inputs.weight
    counts = np.bincount(truth, minlength=n_classes)
    true = np.bincount(truth, weight, n_classes)
    taken = np.bincount(chosen, weight, n_classes)
    right = truth == chosen
    hits = np.bincount(truth[right], None if weight is None else weight[right], n_classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall, f1 = hits / taken, hits / true, 2 * hits / (true + taken)
    return [
        {
            "class": _label(inputs.classes[k]),
            "rows": int(counts[k]),
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "f1": float(f1[k]),
        }
        for k in range(n_classes)
    ]


def _label(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _class_table(classes: list[dict[str, Any]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Classes", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("class")
    for name in ("rows", "precision", "recall", "F1"):
        table.add_column(name, justify="right")
    for one in classes[:_MOST_CLASSES]:
        table.add_row(
            Text(str(one["class"])),
            f"{one['rows']:,}",
            *(number_text(one[name]) for name in ("precision", "recall", "f1")),
        )
    if len(classes) > _MOST_CLASSES:
        table.caption = f"and {len(classes) - _MOST_CLASSES} more classes; --json has all"
        table.caption_justify = "left"
    return table
