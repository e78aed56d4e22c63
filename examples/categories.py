"""Categories of few and of many levels.

The destination of a flight has 97 levels. A category is split by sets of levels, or by the mean of
the target for each level, without an encoder. One-hot columns need eight times as many columns for
the same score. Levels that are unknown from training are missing values.
"""

from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from arboost import GradientBoostingClassifier

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")
X, y = flights.drop(columns="late"), flights["late"]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

strings = make_column_selector(dtype_exclude="number")
one_hot = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False), strings),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
models = {
    "sets of levels": GradientBoostingClassifier(category_encoding="groups", random_state=0),
    "target means": GradientBoostingClassifier(category_encoding="mean", random_state=0),
    "one-hot columns": make_pipeline(one_hot, GradientBoostingClassifier(random_state=0)),
    "without strings": GradientBoostingClassifier(random_state=0),
}
print(f"{'':<16} columns  ROC AUC")
for name, model in models.items():
    columns = [c for c in X if name != "without strings" or c not in strings(X)]
    model.fit(X_train[columns], y_train)
    auc = roc_auc_score(y_test, model.predict_proba(X_test[columns])[:, 1])
    n_columns = getattr(model, "steps", [(None, model)])[-1][1].n_features_in_
    print(f"{name:<16} {n_columns:7d} {auc:8.3f}")

model = models["sets of levels"]
row = X_test.iloc[[0]]
print(f"\n{row['airline'].item()} to {row['dest'].item()}:", end=" ")
print(f"{model.predict_proba(row)[0, 1]:.3f} late")
for level in ("Atlantis", None):
    p = model.predict_proba(row.assign(dest=pd.Series([level], row.index, dtype="str")))[0, 1]
    print(f"{row['airline'].item()} to {level or 'an unknown place'}: {p:.3f} late")
