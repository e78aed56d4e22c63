"""Regression with strings and missing values.

The mass of a penguin from its species, island, sex and measurements. Strings and missing values
go into the model as they are: no encoder, no imputer. The partial dependence shows that species
and sex matter after the measurements are known.
"""

from pathlib import Path

import pandas as pd
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split

import arboost
from arboost import GradientBoostingRegressor, Grid, plots

penguins = pd.read_csv(Path(__file__).parent / "data/penguins.csv")
penguins = penguins.dropna(subset=["body_mass_g"])
print(arboost.describe(penguins).text(80))

train, test = train_test_split(penguins, random_state=0)
model = GradientBoostingRegressor(random_state=0).fit(train, "body_mass_g")

y_test = test["body_mass_g"]
mean = train["body_mass_g"].mean()
print(f"\nmean absolute error  {mean_absolute_error(y_test, model.predict(test)):.0f} g")
print(f"of the mean          {(y_test - mean).abs().mean():.0f} g")
print(f"R²                   {model.score(test, y_test):.2f}")

for feature in ("species", "sex"):
    dependence = model.partial_dependence(test, feature, grid=Grid(missing=True))
    print(f"\nmean prediction by {feature}")
    for level, mass in zip(dependence.grid[0], dependence.average, strict=True):
        print(f"  {level or 'missing':<10} {mass:.0f} g")

flipper = model.partial_dependence(test[:40], "flipper_length_mm", kind="both", grid=50)
plots.plot_partial_dependence(flipper).figure.savefig("regression.svg")
