"""A search for better parameters.

`arboost.tune` searches the declared ranges of any ensemble's parameters with Optuna. All trials
share one binned table, and poor ones are pruned early. A single tree without limits overfits, so
there is much to gain; the booster's defaults are hard to beat. The final scores are those of test
rows that the search has not used.
"""

import textwrap
from pathlib import Path

import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import arboost

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")
train, test = train_test_split(flights, stratify=flights["late"], random_state=0)


def auc(model):
    return roc_auc_score(test["late"], model.predict_proba(test)[:, 1])


for model in (
    arboost.DecisionTreeClassifier(random_state=0),
    arboost.GradientBoostingClassifier(random_state=0),
):
    result = arboost.tune(model, train, "late", trials=15, metric="auc", verbose=0)
    default = auc(model.fit(train, "late"))
    tuned = auc(result.estimator)
    print(type(model).__name__)
    names = sorted(result.trials[-1]["params"])
    trials = f"  {len(result.trials)} trials of {', '.join(names)}"
    print(textwrap.fill(trials, 80, subsequent_indent="    "))
    print(f"  ROC AUC of the default on test rows  {default:.3f}")
    print(f"  tuned: {'at least 0.03 better' if tuned > default + 0.03 else 'about the same'}")
