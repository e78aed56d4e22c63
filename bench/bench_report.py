"""How long does a report take, section by section, how large is its page, and how soon is it drawn?

The browser is Chromium, driven by Playwright; without either, the last figures are left out.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import arboost
from support import harness
from support.data import higgs_like

FEATURES, LEAVES = 50, 31
MISSING = 0.02
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    """Fit once, report on rows that the model has not seen, print and save the figures."""
    parser = harness.parser(__doc__, "report")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the report")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--threads", type=int, default=harness.cores())
    args = harness.parse(parser)
    model, X, y, X_train = problem(args.rows, args.rounds, args.threads)
    figures = {
        "one model": measured(args, model, X, y),
        "with training rows and a second model": measured(
            args, model, X, y, X_train=X_train, compare=model.truncated(args.rounds // 2)
        ),
    }
    sections = list(figures["one model"]["sections"])
    rows = [(name, *(one["sections"].get(name) for one in figures.values())) for name in sections]
    rows += [
        (text, *(one.get(name) for one in figures.values()))
        for name, text in (
            ("page", "page"),
            ("seconds", "in all"),
            ("megabytes", "page, MB"),
            ("opened", "browser: content loaded"),
            ("drawn", "browser: last chart drawn"),
        )
    ]
    harness.show("seconds", ("section", *figures), rows)
    harness.save(args, {"reports": figures, "bars": bars(figures["one model"])})


def bars(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the targets of the report of one model."""
    shared = {"less_is_better": True}
    found = [
        {"work": "report", "value": one["seconds"], "bar": 10.0, "stretch": 2.0, "unit": "s"},
        {"work": "report, page", "value": one["megabytes"], "bar": 5.0, "stretch": 2.5}
        | {"unit": "MB"},
    ]
    if "drawn" in one:
        drawn = {"work": "report, opened and drawn", "value": one["drawn"], "unit": "s"}
        found.append(drawn | {"bar": 1.0, "stretch": 0.5})
    return [bar | shared for bar in found]


def problem(
    n_rows: int, rounds: int, threads: int
) -> tuple[arboost.Predictor, np.ndarray, np.ndarray, np.ndarray]:
    """Return a booster, the rows to report on with their labels, and the training rows."""
    X, y = higgs_like(2 * n_rows, FEATURES)
    X[np.random.default_rng(0).random(X.shape) < MISSING] = np.nan
    booster = arboost.GradientBoostingClassifier(
        n_estimators=rounds, learning_rate=0.1, max_leaves=LEAVES, n_jobs=threads
    )
    return booster.fit(X[:n_rows], y[:n_rows]).model_, X[n_rows:], y[n_rows:], X[:n_rows]


def measured(args: Any, model: arboost.Predictor, X: Any, y: Any, **options: Any) -> dict[str, Any]:
    """Return the figures of the fastest of several reports."""
    best: dict[str, Any] = {}
    for _ in range(args.repeats):
        start = time.perf_counter()
        report = model.report(X, y, n_jobs=args.threads, **options)
        computed = time.perf_counter()
        page = report.to_html()
        end = time.perf_counter()
        if not best or end - start < best["seconds"]:
            best = {
                "sections": {name: round(one, 4) for name, one in report.seconds.items()},
                "page": round(end - computed, 4),
                "seconds": round(end - start, 4),
                "megabytes": round(len(page.encode()) / 1e6, 3),
            }
    return best | in_browser(page, args.repeats)


def in_browser(page: str, repeats: int) -> dict[str, float]:
    """Return the seconds from opening a page to its content, and to its last chart."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print("browser: left out, Chromium or Playwright is not installed", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        options = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=path, args=options)
        runs = [opened(browser, file.as_uri()) for _ in range(repeats)]
        browser.close()
    return min(runs, key=lambda one: one["drawn"])


def opened(browser: Any, address: str) -> dict[str, float]:
    """Return the seconds of one visit; charts below the screen are drawn, too."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    start = time.perf_counter()
    tab.goto(address, wait_until="domcontentloaded")
    loaded = time.perf_counter()
    tab.evaluate("arboostReport.charts.drawAll()")
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    end = time.perf_counter()
    tab.close()
    return {"opened": round(loaded - start, 4), "drawn": round(end - start, 4)}


if __name__ == "__main__":
    main()
