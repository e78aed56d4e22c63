"""The run of ``arboost explain``: importances, the SHAP values of one row, or of all rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.cli.console import Console, bars, seconds_text, size_text, waterfall
from arboost.cli.errors import (
    DataFailure,
    ModelFailure,
    UsageFailure,
    reading_data,
    writing_output,
)
from arboost.cli.model_files import (
    check_table_output,
    find_offset,
    load_model,
    needed_columns,
    read_rows,
)
from arboost.cli.tables import input_label, open_rows, refuse_input
from arboost.losses.links import read_offset

Floats = NDArray[np.float64]

_SHAP_ROWS = 5_000  # sampled for importances
_PERMUTED_ROWS = 20_000
_MEANINGS = {
    "gain": "gain: share of the gain of all splits",
    "shap": "SHAP: mean contribution to the score",
    "permutation": "permutation: increase of the loss",
}


def explain(console: Console, *, model: str, data: Sequence[str], **options: Any) -> None:
    """Explain a model; options are those of the command."""
    output, row, label = options["output"], options["row"], options["label"]
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
    if output is not None:
        _write_values(console, loaded, data, output, options)
    elif row is not None:
        _show_row(console, loaded, data, options)
    else:
        _show_importances(console, loaded, data, options)


# ---- importances ----


def _show_importances(
    console: Console, model: Any, data: Sequence[str], options: dict[str, Any]
) -> None:
    names = list(model.feature_names)
    found: dict[str, Floats] = {}
    if hasattr(model, "importances"):
        found["gain"] = _shares(model.importances("gain"))
    elif not data:
        raise UsageFailure("an ensemble of models is explained by rows: add the path of a table.")
    if data:
        found |= _of_rows(console, model, data, options)
    if not found:
        raise ModelFailure(
            "this ensemble of models has no importances: its members have probabilities, which are "
            "no sums of SHAP values. Explain a model of trees, such as gradient_boosting."
        )
    by = "shap" if "shap" in found else next(iter(found))
    order = np.argsort(-found[by], kind="stable")
    rows = [
        {"feature": names[i]} | {kind: float(values[i]) for kind, values in found.items()}
        for i in order
    ]
    console.emit({"importances": rows, "sorted_by": by})
    if not console.as_json:
        shown = rows[: options["top"]]
        lengths = bars([row[by] for row in shown], has_blocks=console.has_blocks)
        console.show_widest(
            _importance_table(shown, list(found), lengths),
            _importance_table(shown, list(found), [""] * len(shown)),
            _importance_table(shown, [by], [""] * len(shown)),
        )
        if len(rows) > options["top"]:
            console.say(f"and {len(rows) - options['top']:,} more features; --top shows more")


def _of_rows(
    console: Console, model: Any, data: Sequence[str], options: dict[str, Any]
) -> dict[str, Floats]:
    """Return the importances that need rows: SHAP values, and permutation with a target."""
    target = options["target"] or model.schema.target
    offset = find_offset(model, options["offset"])
    try:
        loaded = read_rows(console, model, data, [target], options["form"], offset)
    except DataFailure:
        if options["target"] is not None or target is None:
            raise
        loaded = read_rows(console, model, data, [], options["form"])
        console.say(f"the table has no column {target!r}: no permutation importances")
    table, found = loaded.table, {}
    has_target = target is not None and target in table.column_names
    features = table.drop_columns([*offset, *([target] if has_target else [])])
    with console.phase("SHAP values") as phase, reading_data():
        some = _sampled(features, _SHAP_ROWS)
        try:
            values = model.shap_values(some, n_jobs=options["jobs"])
            found["shap"] = np.abs(values).reshape(*values.shape[:2], -1).mean(axis=0).sum(axis=1)
            phase.result = f"SHAP values of {some.num_rows:,} rows in {seconds_text(phase.seconds)}"
        except TypeError as error:
            if not str(error).endswith("."):
                raise  # of Python, not of the library
            console.warn(str(error))
    if has_target and hasattr(model, "importances"):
        with console.phase("permutation importances") as phase, reading_data():
            some = _sampled(table, _PERMUTED_ROWS)
            found["permutation"] = model.importances(
                "permutation", some, target, offset=offset or None, n_jobs=options["jobs"]
            )
            phase.result = (
                f"permutation importances of {some.num_rows:,} rows in "
                f"{seconds_text(phase.seconds)}"
            )
    return found


def _sampled(table: Any, n_rows: int) -> Any:
    if table.num_rows <= n_rows:
        return table
    rows = np.random.default_rng(0).choice(table.num_rows, n_rows, replace=False)
    return table.take(np.sort(rows))


def _shares(values: Floats) -> Floats:
    total = values.sum()
    return values / total if total > 0 else values


def _importance_table(rows: list[dict[str, Any]], kinds: list[str], lengths: list[str]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heads = {"gain": "gain", "shap": "mean |SHAP|", "permutation": "permutation"}
    table = Table(
        title="Importances of the features",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
        caption="; ".join(_MEANINGS[kind] for kind in kinds),
        caption_justify="left",
    )
    table.add_column("feature", overflow="ellipsis", no_wrap=True)
    if any(lengths):
        table.add_column("", no_wrap=True)
    for kind in kinds:
        table.add_column(heads[kind], justify="right", no_wrap=True)
    for row, bar in zip(rows, lengths, strict=True):
        cells = [f"{row[kind]:.1%}" if kind == "gain" else f"{row[kind]:.4g}" for kind in kinds]
        bars = [Text(bar, style="cyan")] if any(lengths) else []
        table.add_row(Text(row["feature"]), *bars, *cells)
    return table


# ---- one row ----


def _show_row(console: Console, model: Any, data: Sequence[str], options: dict[str, Any]) -> None:
    number, offset = options["row"], find_offset(model, options["offset"])
    loaded = read_rows(console, model, data, [], options["form"], offset)
    if not 0 <= number < loaded.table.num_rows:
        raise UsageFailure(
            f"--row {number} is not there: {loaded.label} has the rows 0 to "
            f"{loaded.table.num_rows - 1:,}."
        )
    row = loaded.table.slice(number, 1)
    with reading_data():
        try:
            values = model.shap_values(row.drop_columns(offset), n_jobs=options["jobs"])[0]
        except TypeError as error:
            raise ModelFailure(str(error)) from error
        values = values.reshape(len(values), -1)
        base = np.atleast_1d(model.expected_value(n_jobs=options["jobs"]))
        column, name = _column(model, base + values.sum(axis=0), options["label"])
        start: dict[str, Any] = {"offset": offset} if offset else {}
        prediction = model.predict(row, **start, n_jobs=options["jobs"])[0]
        added = read_offset(model, row, 1, offset or None)
    names = list(model.feature_names)
    shown = [row.column(name)[0].as_py() if name in row.column_names else None for name in names]
    if model.schema.parts:  # derived features are not columns of the row
        from arboost.models.shap import shown_columns

        n_columns = model.schema.n_columns
        derived = shown_columns(row, model.schema)[n_columns:]
        shown[n_columns:] = [int(one[0]) if one[0] == one[0] else None for one in derived]
    of_row = 0.0 if added is None else float(added[0, min(column, added.shape[1] - 1)])
    total = float(base[column] + values[:, column].sum() + of_row)
    order = np.argsort(-np.abs(values[:, column]), kind="stable")
    steps = [(names[i], shown[i], float(values[i, column])) for i in order]
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
    title = f"Row {number}: prediction {_plain(prediction)}" + (f", {name}" if name else "")
    console.show(
        waterfall(
            title,
            float(base[column]),
            [*([("offset", of_row, of_row)] if offset else []), *steps[: options["top"]]],
            total,
            console.width,
            has_blocks=console.has_blocks,
        )
    )


def _column(model: Any, scores: Floats, label: str | None) -> tuple[int, str]:
    """Return the output to explain, and its name: that of the class, or the largest score."""
    classes = model.classes
    if label is not None:
        if classes is None:
            raise UsageFailure(
                "--class needs a classifier, but the model is a regressor. Leave it out."
            )
        labels = [str(one) for one in classes]
        if label not in labels:
            raise UsageFailure(f"--class {label} is no class: use one of {', '.join(labels)}.")
        if len(scores) == 1:
            if labels.index(label) == 0:
                raise UsageFailure(
                    f"with two classes the contributions are those of {labels[1]}; for {labels[0]} "
                    "their signs are the opposite."
                )
            return 0, f"score of class {label}"
        return labels.index(label), f"score of class {label}"
    if len(scores) == 1:
        return 0, "" if classes is None else f"score of class {classes[-1]}"
    best = int(np.argmax(scores))
    return best, f"output {best}" if classes is None else f"score of class {classes[best]}"


def _plain(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


# ---- all rows ----


def _write_values(
    console: Console, model: Any, data: Sequence[str], output: str, options: dict[str, Any]
) -> None:
    """Write the SHAP values of all rows, batch by batch."""
    from itertools import chain

    from arboost.models.prediction_files import write_batches

    with console.phase("SHAP values") as phase:
        stream, paths = open_rows(
            console,
            data,
            form=options["form"],
            columns=lambda names: needed_columns(model, names, input_label(data)),
            like=model,
            progress=phase.update_bytes,
        )
        refuse_input(output, paths)
        batches = _value_batches(model, stream, options["jobs"])
        with reading_data():
            first = next(batches, None)
            if first is None:
                raise DataFailure("the table has no rows to explain.")
            with writing_output(output):
                n_rows = write_batches(
                    chain([first], batches),
                    first.schema,
                    output,
                    escape_formulas=options["safe_csv"],
                )
        phase.result = (
            f"wrote the SHAP values of {n_rows:,} rows to {output}, "
            f"{size_text(os.path.getsize(output))} in {seconds_text(phase.seconds)}"
        )
    console.emit({"output": output, "rows": n_rows, "seconds": phase.seconds})


def _value_batches(model: Any, stream: Any, n_jobs: int | None) -> Iterator[Any]:
    import pyarrow

    base = np.atleast_1d(model.expected_value(n_jobs=n_jobs))
    ends = [""] if len(base) == 1 else [f" {one}" for one in _output_names(model, len(base))]
    names = [f"{name}{end}" for end in ends for name in model.feature_names]
    names += [f"expected_value{end}" for end in ends]
    for batch in stream:
        try:
            values = model.shap_values(batch, n_jobs=n_jobs)
        except TypeError as error:
            raise ModelFailure(str(error)) from error
        values = values.reshape(*values.shape[:2], -1)
        columns = [
            np.ascontiguousarray(values[:, i, k])
            for k in range(len(base))
            for i in range(values.shape[1])
        ]
        columns += [np.full(len(values), one) for one in base]
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array(one) for one in columns], names)


def _output_names(model: Any, n_outputs: int) -> list[str]:
    classes = model.classes
    if classes is not None and len(classes) == n_outputs:
        return [str(one) for one in classes]
    return [str(one) for one in range(n_outputs)]
