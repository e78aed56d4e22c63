"""A complete project, from a table to a report page.

Flights out of New York City: which ones will be late? Every ensemble is compared on the same folds.
The best one is trained, explained, saved, loaded in a new process without scikit-learn, and shown
on a report page. `make demo` runs it.
"""

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import arboost

FLIGHTS = Path(__file__).parent / "data/flights.csv.gz"
SERVICE = """
import hashlib, json, sys
import arboost

model = arboost.load(sys.argv[1])
with open(sys.argv[2]) as file:
    rows = json.load(file)
probabilities = model.predict_proba(rows)
print(hashlib.sha256(probabilities.tobytes()).hexdigest(), "sklearn" in sys.modules)
"""

console = Console(width=80, highlight=False)


def heading(number, text):
    console.print(f"\n[bold cyan]{number}[/]  [bold]{text}[/]\n")


def compare(train):
    """Return the best of the models that explain their importances, not yet fitted."""
    result = arboost.compare(train, "late", folds=3)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "ROC AUC", "± s.e.", "fit", "predict"):
        table.add_column(name, justify="right" if name else "left")
    for model in result.models:
        times = f"{model.mean_fit_seconds:.2f} s", f"{1e3 * model.mean_predict_seconds:.1f} ms"
        score = f"{model.mean:.3f}", f"{model.standard_error:.3f}"
        name = f"{model.name} *" if model.is_tied else model.name
        table.add_row(name, *score, *times, style="bold green" if model.name == result.best else "")
    console.print(table)
    console.print("* best, or no more than two standard errors of the difference away", style="dim")
    estimators = [result.estimators[model.name] for model in result.models]
    return next(estimator for estimator in estimators if hasattr(estimator, "importances"))


def train_best(model, train):
    """Fit the model; a callback after each round moves the bar."""
    start = time.perf_counter()
    columns = TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("rounds")
        model.fit(
            train,
            "late",
            callbacks=[
                lambda done: progress.update(bar, completed=done.index + 1, total=done.total)
            ],
        )
    console.print(f"{model.n_iter_} trees in {time.perf_counter() - start:.2f} s")


def explain(model, X, y):
    """Print the importances, the course over the day, and the reasons for one prediction."""
    importances = model.importances("permutation", X, y, metric="auc")
    console.print("Loss of AUC when a column is shuffled:")
    for i in np.argsort(-importances)[:5]:
        bar = "█" * round(600 * importances[i])
        console.print(f"  {X.columns[i]:<12} {importances[i]:.3f} [cyan]{bar}[/]")

    console.print("\nMean probability of a late arrival, by the hour of departure:")
    day = model.partial_dependence(
        X, "hour", grid=arboost.Grid(values={"hour": [7, 10, 13, 16, 19, 21]})
    )
    for hour, share in zip(day.grid[0], day.average, strict=True):
        console.print(f"  {hour:2.0f} h {share:5.0%} [cyan]{'█' * round(100 * share)}[/]")

    worst = int(np.argmax(model.predict_proba(X)[:, 1]))
    row = X.iloc[[worst]]
    values, score = model.shap_values(row)[0], float(model.expected_value()[0])
    truth = "late" if y.iloc[worst] == "yes" else "on time"
    flight = f"{row['airline'].item()} from {row['origin'].item()} to {row['dest'].item()}"
    console.print(f"\nWhy the riskiest flight, {flight}, which was {truth}:")
    console.print(f"  {'all flights':<22} {1 / (1 + np.exp(-score)):5.0%}")
    for i in np.argsort(-np.abs(values))[:5]:
        score += values[i]
        known = "missing" if pd.isna(row.iat[0, i]) else row.iat[0, i]
        console.print(f"  {f'{X.columns[i]} = {known}':<22} {1 / (1 + np.exp(-score)):5.0%}")
    console.print(f"  {'all other columns':<22} {model.predict_proba(row)[0, 1]:5.0%}")


def serve(model, X, folder):
    """Save the model, and compare predictions of a new process bit by bit."""
    model.save(folder / "flights.arb")
    (folder / "rows.json").write_text(json.dumps(X.to_dict("list")))
    files = str(folder / "flights.arb"), str(folder / "rows.json")
    there = subprocess.check_output([sys.executable, "-c", SERVICE, *files], text=True)
    here = hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest()
    if there.split() != [here, "False"]:
        raise SystemExit(f"the new process differs: {there} instead of {here} False")
    console.print(f"{files[0]}, {Path(files[0]).stat().st_size / 1e3:.0f} kB")
    console.print(f"A new process loaded it without scikit-learn: {len(X)} predictions,")
    console.print("[green]equal to the last bit[/].")


def main(folder):
    flights = pd.read_csv(FLIGHTS)
    heading(1, "A table with strings and missing values: all columns go in as they are")
    console.print(arboost.describe(flights).text(80))
    train, test = train_test_split(flights, stratify=flights["late"], random_state=0)
    X, y = test.drop(columns="late"), test["late"]

    heading(2, f"Every ensemble with its defaults, on 3 folds of {len(train)} training rows")
    model = compare(train)

    heading(3, f"The best one, trained on all {len(train)} training rows")
    train_best(model, train)
    auc = roc_auc_score(y, model.predict_proba(X)[:, 1])
    console.print(f"ROC AUC on {len(X)} test rows: [bold]{auc:.3f}[/]; random guessing: 0.500")

    heading(4, "What the model has learnt")
    explain(model, X, y)

    heading(5, "Saved, and loaded where there is no training code")
    serve(model, X, folder)

    heading(6, "A report page for colleagues: scores, explanations, single rows and trees")
    page = folder / "report.html"
    model.report(X, y, path=page, X_train=train, y_train="late")
    console.print(f"[bold]{page.resolve()}[/]", soft_wrap=True)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "arboost_demo")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
