"""SHAP values of one row, in words.

Why does the model expect this flight to be late? SHAP values divide the log-odds of a row among
its features: together with the base value they sum to the raw score, exactly. Each line is one
step from the share of late flights to the probability of this one.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from arboost import GradientBoostingClassifier, plots

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")
train, test = train_test_split(flights, random_state=0)
model = GradientBoostingClassifier(random_state=0).fit(train, "late")

X_test = test.drop(columns="late")
chosen = int(np.argmax(model.predict_proba(X_test)[:, 1]))
row = X_test.iloc[[chosen]]
values = model.shap_values(row)[0]
score = model.expected_value().item()


def probability(log_odds):
    return 1 / (1 + np.exp(-log_odds))


print(f"{row['airline'].item()} from {row['origin'].item()} to {row['dest'].item()}")
print(f"\nbase value {probability(score):22.0%} late")
order = np.argsort(-np.abs(values))
for i in order[:8]:
    score += values[i]
    name, value = row.columns[i], row.iat[0, i]
    shown = value if isinstance(value, str) else f"{value:g}"
    print(f"{name} = {shown:<{20 - len(name)}} {values[i]:+5.2f}  {probability(score):4.0%}")
score += values[order[8:]].sum()
print(f"{'all other features':<23} {values[order[8:]].sum():+5.2f}  {probability(score):4.0%}")

print(f"\nin fact the flight was {'late' if test['late'].iloc[chosen] == 'yes' else 'on time'}")
exact = np.isclose(score, model.decision_function(row)[0], rtol=1e-12)
print(f"base value and SHAP values sum to the raw score: {exact}")

plots.plot_shap_waterfall(model, row, n_features=8).figure.savefig("shap_row.svg")
