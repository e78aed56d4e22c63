"""Draw the pictures of docs/tutorial.md: python docs/images/make_tutorial.py [folder].

The same versions of the libraries give the same files. The picture of the report is a screenshot,
made where Playwright and its browser, or the one of the variable CHROMIUM, are there.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot
from sklearn.model_selection import train_test_split

import arboost
from arboost import plots

TABLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "flights.csv.gz"


def fitted() -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """Return the model of the page, its training rows and its test rows."""
    flights = pd.read_csv(TABLE)
    train, test = train_test_split(flights, stratify=flights["late"], random_state=0)
    return arboost.GradientBoostingClassifier(verbose=0).fit(train, "late"), train, test


def draw() -> dict[str, Any]:
    """Return the axes of each picture."""
    model, _, test = fitted()
    row = int(np.argmax(model.predict_proba(test)[:, 1]))
    curve = model.partial_dependence(test, "hour", grid=30)
    return {
        "learning_curve": plots.plot_learning_curves(model),
        "waterfall": plots.plot_shap_waterfall(model, test.drop(columns="late").iloc[[row]]),
        "hour": plots.plot_partial_dependence(curve),
    }


def photograph(path: Path) -> None:
    """Write the top of the report page as a picture of 1,000 pixels' width."""
    from playwright.sync_api import sync_playwright

    model, train, test = fitted()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        model.report(test, "late", X_train=train, path=page_file)
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1000, "height": 760})
        page.goto(page_file.as_uri())
        page.wait_for_selector("svg")
        page.screenshot(path=path)
        browser.close()


def main(folder: Path) -> None:
    """Write all pictures."""
    mpl.use("Agg")
    # Names inside the files are hashes with this salt.
    with mpl.rc_context({"svg.hashsalt": "arboost"}):
        for name, axes in draw().items():
            path = folder / f"tutorial_{name}.svg"
            axes.figure.savefig(path, metadata={"Date": None})
            print(path)
        pyplot.close("all")
    try:
        photograph(folder / "tutorial_report.png")
    except ImportError:
        print("no picture of the report: Playwright is not installed")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
