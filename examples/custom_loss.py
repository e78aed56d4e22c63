"""A custom loss: underestimates cost more.

Too little stock costs four times as much as too much. A loss is a few functions of NumPy arrays:
its gradients and hessians, and optionally a start value and the loss itself. The fitted model
predicts higher than squared error does, and its cost is lower.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from arboost import CustomLoss, GradientBoostingRegressor

SHORT, EXTRA = 4.0, 1.0


def slopes(y, score):
    return np.where(score < y, SHORT, EXTRA)


def gradients(y, score, weight):
    return weight * slopes(y, score) * (score - y), weight * slopes(y, score)


def value(y, score, weight):
    return np.average(slopes(y, score) * (score - y) ** 2 / 2, weights=weight)


def start(y, weight):
    return np.average(y, weights=weight)


X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
loss = CustomLoss(name="stock", gradients=gradients, value=value, start=start)

print("loss            cost  mean prediction  underestimates")
for name, used in (("squared error", "squared_error"), ("custom", loss)):
    model = GradientBoostingRegressor(
        loss=used, n_estimators=100, max_depth=2, learning_rate=0.05, random_state=0
    ).fit(X_train, y_train)
    predicted = model.predict(X_test)
    cost, below = value(y_test, predicted, None), np.mean(predicted < y_test)
    print(f"{name:<13} {cost:6.0f} {predicted.mean():16.0f} {below:15.0%}")
