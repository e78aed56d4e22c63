"""Stacking of different models.

Boosted trees, extra trees, nearest neighbours and a linear model make different errors on images
of digits. Voting takes the mean of their probabilities. A stack learns from out-of-fold
predictions how far to trust each member, and its log loss is well below that of the best one.
"""

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from arboost import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

boosting = GradientBoostingClassifier(
    n_estimators=60, max_depth=3, learning_rate=0.15, multi_strategy="multi_output_tree"
)
linear = LogisticRegression(C=0.1, max_iter=1000)
members = [
    ("boosting", boosting),
    ("extra trees", ExtraTreesClassifier(100, random_state=0)),
    ("neighbours", make_pipeline(StandardScaler(), KNeighborsClassifier(10))),
    ("linear", make_pipeline(StandardScaler(), linear)),
]
stack = StackingClassifier(members, cv=3).fit(X_train, y_train)
voting = VotingClassifier(members, voting="soft").fit(X_train, y_train)

print(f"{len(X_test)} test rows  accuracy  log loss")
fitted = {**stack.named_estimators_, "voting": voting, "stack": stack}
for name, model in fitted.items():
    probabilities = model.predict_proba(X_test)
    accuracy = accuracy_score(y_test, probabilities.argmax(axis=1))
    print(f"{name:<13} {accuracy:9.3f} {log_loss(y_test, probabilities):9.3f}")
