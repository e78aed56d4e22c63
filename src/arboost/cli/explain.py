"""``arboost explain``: importances of the features, SHAP values of one row, or of all rows."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, bars, new_table, seconds_text, waterfall
from arboost.cli.errors import DataFailure, ModelFailure, UsageFailure, failures_as, writing_output
from arboost.cli.model_files import check_table_output, load_model
from arboost.cli.tables import RowSpec, open_table, refuse_input
from arboost.text import counted, size_text

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

_SHAP_ROWS = 5_000  # sampled for importances
_PERMUTED_ROWS = 20_000
# Kind of importances -> head of its column, and meaning.
_KINDS = {
    "gain": ("gain", "gain: share of the gain of all splits"),
    "shap": ("mean |SHAP|", "SHAP: mean contribution to the score"),
    "permutation": ("permutation", "permutation: increase of the loss"),
}


@click.command(
    cls=opt.SectionedCommand,
    help="Importances of the features of a model: by gain alone; with a table also by SHAP "
    "values, and with its target by permutation.",
)
@opt.model_argument
@click.argument("data", nargs=-1, metavar="[DATA]...", type=click.Path())
@opt.target_option(required=False)
@click.option(
    "--row", type=int, metavar="N", help="Contributions to the prediction of row N, from 0."
)
@opt.offset_option("Offset of the rows; the model may know its columns.")
@click.option("--class", "label", metavar="LABEL", help="With --row: class to explain.")
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Features to show."
)
@opt.output_option("File of the SHAP values of all rows, by its suffix.")
@opt.safe_csv_option
@opt.input_options
@opt.run_options
@opt.console_options()
def explain(
    console: Console,
    *,
    model: str,
    data: tuple[str, ...],
    row: int | None,
    label: str | None,
    top: int,
    output: str | None,
    **options: Any,
) -> None:
    """Show importances of the features, and SHAP values of rows."""
    if not data and (output is not None or row is not None):
        raise UsageFailure("--row and -o explain rows of a table: add its path.")
    if label is not None and row is None:
        raise UsageFailure("--class is for --row. Add --row N.")
    if row is not None and output is not None:
        raise UsageFailure("--row and -o are two results: use one of them.")
    if output is not None:
        check_table_output(output, safe_csv=options["safe_csv"])
        refuse_input(output, [model])
    loaded = load_model(model, options["device"])
    jobs = options["jobs"]
    spec = RowSpec(
        data=data, form=options["form"], target=options["target"] or "", offset=options["offset"]
    )
    if output is not None:
        _write_values(console, loaded, spec, output, jobs, safe_csv=options["safe_csv"])
    elif row is not None:
        _show_row(console, loaded, replace(spec, target=""), row, label, top, jobs)
    else:
        _show_importances(console, loaded, spec, top, jobs)


# ---- importances ----


def _show_importances(
    console: Console, model: Any, spec: RowSpec, top: int, jobs: int | None
) -> None:
    import numpy as np

    names = list(model.feature_names)
    importances: dict[str, Floats] = {}
    if hasattr(model, "importances"):
        gains = model.importances("gain")
        importances["gain"] = gains / gains.sum() if gains.sum() > 0 else gains
    elif not spec.data:
        raise UsageFailure("an ensemble of models is explained by rows: add the path of a table.")
    if spec.data:
        importances |= _importances_of_rows(console, model, spec, jobs)
    if not importances:
        raise ModelFailure(
            "this ensemble of models has no importances: its members predict probabilities, which "
            "are not sums of trees. Explain a model of trees, such as gradient_boosting."
        )
    by = "shap" if "shap" in importances else next(iter(importances))
    order = np.argsort(-importances[by], kind="stable")
    rows = [
        {"feature": names[i]} | {kind: float(values[i]) for kind, values in importances.items()}
        for i in order
    ]
    console.emit({"importances": rows, "sorted_by": by})
    if console.as_json:
        return
    lengths = bars([row[by] for row in rows[:top]], has_blocks=console.has_blocks)
    kinds = list(importances)
    console.show_widest(
        _importance_table(rows[:top], kinds, lengths),
        _importance_table(rows[:top], kinds, []),
        _importance_table(rows[:top], [by], []),
    )
    if len(rows) > top:
        console.say(f"and {len(rows) - top:,} more features; --top shows more")


def _importances_of_rows(
    console: Console, model: Any, spec: RowSpec, jobs: int | None
) -> dict[str, Floats]:
    """Importances that need rows: SHAP values, and permutation with a target."""
    import numpy as np

    from arboost.cli.rows import find_offset, read_model_rows, with_target

    source = open_table(console, spec.data, spec.form)
    name = spec.target or model.schema.target or ""
    if name and not spec.target and name not in source.files.names:
        console.say(f"the table has no column {name!r}: no permutation importances")
        name = ""
    offset = find_offset(model, spec.offset)
    table = read_model_rows(model, replace(spec, offset=offset, target=name), source)
    importances: dict[str, Floats] = {}
    with console.phase("SHAP values") as phase, failures_as(DataFailure):
        rows = _sample(table.drop_columns([*offset, *filter(None, [name])]), _SHAP_ROWS)
        try:
            values = np.abs(model.shap_values(rows, n_jobs=jobs))
        except TypeError as error:
            if not getattr(error, "category", None):
                raise
            console.warn(str(error))
        else:
            by_output = values.reshape(*values.shape[:2], -1)
            importances["shap"] = by_output.mean(axis=0).sum(axis=1)
            count, seconds = counted(rows.num_rows, "row"), seconds_text(phase.seconds)
            phase.result = f"SHAP values of {count} in {seconds}"
    if name and hasattr(model, "importances"):
        with console.phase("permutation importances") as phase, failures_as(DataFailure):
            rows = _sample(with_target(console, table, name), _PERMUTED_ROWS)
            importances["permutation"] = model.importances(
                "permutation", rows, name, offset=offset or None, n_jobs=jobs
            )
            count, seconds = counted(rows.num_rows, "row"), seconds_text(phase.seconds)
            phase.result = f"permutation importances of {count} in {seconds}"
    return importances


def _sample(table: Any, n_rows: int) -> Any:
    if table.num_rows <= n_rows:
        return table
    import numpy as np

    rows = np.random.default_rng(0).choice(table.num_rows, n_rows, replace=False)
    return table.take(np.sort(rows))


def _importance_table(rows: list[dict[str, Any]], kinds: list[str], lengths: list[str]) -> Any:
    from rich.text import Text

    names = ["feature", ""] if lengths else ["feature"]
    table = new_table("Importances of the features", names, [_KINDS[kind][0] for kind in kinds])
    table.columns[0].overflow = "ellipsis"
    table.caption = "; ".join(_KINDS[kind][1] for kind in kinds)
    for number, row in enumerate(rows):
        cells = [f"{row[kind]:.1%}" if kind == "gain" else f"{row[kind]:.4g}" for kind in kinds]
        drawn = [Text(bar, style="cyan") for bar in lengths[number : number + 1]]
        table.add_row(Text(row["feature"]), *drawn, *cells)
    return table


# ---- one row ----


def _show_row(
    console: Console,
    model: Any,
    spec: RowSpec,
    number: int,
    label: str | None,
    top: int,
    jobs: int | None,
) -> None:
    import numpy as np

    from arboost.cli.rows import find_offset, read_model_rows
    from arboost.models.shap import shown_columns

    source = open_table(console, spec.data, spec.form)
    offset = find_offset(model, spec.offset)
    table = read_model_rows(model, replace(spec, offset=offset), source)
    if not 0 <= number < table.num_rows:
        raise UsageFailure(
            f"--row {number} is out of range: {source.label} has the rows 0 to "
            f"{table.num_rows - 1:,}."
        )
    row = table.slice(number, 1)
    with failures_as(ModelFailure):
        values = model.shap_values(row.drop_columns(offset), n_jobs=jobs)[0]
        values = values.reshape(len(values), -1)
        base = np.atleast_1d(model.expected_value(n_jobs=jobs))
    column, name = _output(model, base + values.sum(axis=0), label)
    with failures_as(DataFailure):
        start: dict[str, Any] = {"offset": offset} if offset else {}
        prediction = model.predict(row, **start, n_jobs=jobs)[0]
    offsets = [float(row.column(name)[0].as_py()) for name in offset] or [0.0]
    of_row = offsets[min(column, len(offsets) - 1)]
    total = float(base[column] + values[:, column].sum() + of_row)
    shown = [column[0] for column in shown_columns(row, model.schema)]
    shown = [None if value != value else value for value in shown]  # noqa: PLR0124  # NaN
    order = np.argsort(-np.abs(values[:, column]), kind="stable")
    steps = [(model.feature_names[i], shown[i], float(values[i, column])) for i in order]
    console.emit(
        {
            "row": number,
            "prediction": prediction,
            "output": name,
            "expected_value": float(base[column]),
            **({"offset": of_row} if offset else {}),
            "score": total,
            "contributions": [
                {"feature": feature, "value": value, "shap": shap} for feature, value, shap in steps
            ],
        }
    )
    if console.as_json:
        return
    text = f"{prediction:.5g}" if isinstance(prediction, float) else str(prediction)
    start_steps = [("offset", of_row, of_row)] if offset else []
    console.show(
        waterfall(
            f"Row {number}: prediction {text}" + (f", {name}" if name else ""),
            float(base[column]),
            [*start_steps, *steps[:top]],
            total,
            console.width,
            has_blocks=console.has_blocks,
        )
    )


def _output(model: Any, scores: Floats, label: str | None) -> tuple[int, str]:
    """Output to explain, and its name: that of the class, or the largest score."""
    if label is None:
        best = int(scores.argmax())
        if model.classes is not None:
            return best, f"score of class {model.classes[best if len(scores) > 1 else -1]}"
        return best, f"output {best}" if len(scores) > 1 else ""
    if model.classes is None:
        raise UsageFailure(
            "--class needs a classifier, but the model is a regressor. Leave it out."
        )
    labels = [str(known) for known in model.classes]
    if label not in labels:
        raise UsageFailure(f"--class {label} is unknown: use one of {', '.join(labels)}.")
    if len(scores) == 1 and label == labels[0]:
        raise UsageFailure(
            f"with two classes the contributions are those of {labels[1]}; for {labels[0]} their "
            "signs are the opposite."
        )
    return 0 if len(scores) == 1 else labels.index(label), f"score of class {label}"


# ---- all rows ----


def _write_values(
    console: Console, model: Any, spec: RowSpec, output: str, jobs: int | None, *, safe_csv: bool
) -> None:
    """Write the SHAP values of all rows, batch by batch."""
    from arboost.cli.rows import needed_columns

    source = open_table(console, spec.data, spec.form)
    refuse_input(output, source.files.paths)
    source = source.select(needed_columns(model, source), like=model)
    with console.phase("SHAP values") as phase:
        with failures_as(DataFailure), writing_output(output):
            n_rows = model.predict_files(
                source.files, output, method="shap_values", n_jobs=jobs, escape_formulas=safe_csv
            )
        phase.result = (
            f"wrote the SHAP values of {n_rows:,} rows to {output}, "
            f"{size_text(os.path.getsize(output))} in {seconds_text(phase.seconds)}"
        )
    console.emit({"output": output, "rows": n_rows, "seconds": phase.seconds})
