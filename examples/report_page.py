"""A report page of two models.

One call writes one HTML page without network requests: data, drift, scores with intervals, curves,
importances, SHAP values, single rows and single trees. Here a booster stands next to a forest, on
the same test rows. The same numbers are available in Python, e.g. the worst segments and the
comparison.
"""

from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split

from arboost import GradientBoostingRegressor, RandomForestRegressor

penguins = pd.read_csv(Path(__file__).parent / "data/penguins.csv")
penguins = penguins.dropna(subset=["body_mass_g"])
train, test = train_test_split(penguins, test_size=0.4, random_state=0)

booster = GradientBoostingRegressor(random_state=0).fit(train, "body_mass_g")
forest = RandomForestRegressor(200, quantiles=True, random_state=0).fit(train, "body_mass_g")
report = booster.report(
    test,
    "body_mass_g",
    X_train=train,
    y_train="body_mass_g",
    compare=forest,
    title="Mass of penguins",
)
report.save("report_page.html")
print(f"one file without network requests, below 5 MB: {len(report.to_html()) < 5e6}")

print("\nscore   booster   interval of 95 %   baseline")
for score in report.payload["models"][0]["scores"]:
    interval = f"{score['low']:.2f} to {score['high']:.2f}"
    baseline = round(score["baseline"], 2) + 0.0  # no minus before 0
    print(f"{score['name']:<5} {score['value']:9.2f} {interval:>18} {baseline:10.2f}")

print("\nscore   booster   forest   difference")
for score in report.payload["comparison"]["scores"]:
    print(f"{score['name']:<5} {score['a']:9.2f} {score['b']:8.2f} {score['difference']:12.2f}")

segments = report.payload["models"][0]["segments"]
print(f"\nworst segments by {segments['metric']}")
for row in segments["list"][:4]:
    print(f"  {row['feature']} {row['segment']}: {row['score']:.0f} on {row['n']} rows")
