"""Warm start and checkpoints.

A long fit is interrupted. It wrote its state every ten rounds, so the same call starts again from
there and ends in the same model, byte for byte, as a fit without interruption. Later, more rounds
are added to the model instead of training a new one.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from arboost import Checkpoint, GradientBoostingClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)


def interrupted(done):
    if done.index == 34:
        raise KeyboardInterrupt


state = Checkpoint("fit.arc", every=10)
model = GradientBoostingClassifier(n_estimators=60, subsample=0.7, random_state=0)
try:
    model.fit(X_train, y_train, checkpoint=state, callbacks=[interrupted])
except KeyboardInterrupt:
    print("interrupted in round 35")

started = []
model.fit(X_train, y_train, checkpoint=state, callbacks=[lambda done: started.append(done.index)])
print(f"started again with round {started[0] + 1}, ended with {model.n_iter_} rounds")

at_once = GradientBoostingClassifier(n_estimators=60, subsample=0.7, random_state=0)
at_once.fit(X_train, y_train)
print("same model as in one go:", model.to_json() == at_once.to_json())

model.set_params(warm_start=True)
for rounds in (120, 240, 480):
    model.set_params(n_estimators=rounds).fit(X_train, y_train)
    print(f"{model.n_iter_:4d} rounds, accuracy on test rows {model.score(X_test, y_test):.3f}")
