"""Classification with the defaults.

A gradient booster is fitted to measurements of 569 tumours without a single parameter: it finds
the number of trees on rows that it holds out. The scores are those of test rows that it has never
seen, next to a baseline that always predicts the larger class.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from arboost import GradientBoostingClassifier, plots

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

model = GradientBoostingClassifier(random_state=0).fit(X_train, y_train)
print(f"{len(X_train)} training rows, {model.n_iter_} trees, classes {', '.join(model.classes_)}")

probabilities = model.predict_proba(X_test)
larger = y_train.value_counts().idxmax()
print(f"accuracy  {accuracy_score(y_test, model.predict(X_test)):.3f}")
print(f"baseline  {(y_test == larger).mean():.3f}  (always {larger})")
print(f"ROC AUC   {roc_auc_score(y_test == 'malignant', probabilities[:, 1]):.3f}")
print(f"log loss  {log_loss(y_test, probabilities):.3f}")

print("\nthe first five test rows")
for label, row in zip(y_test[:5], probabilities, strict=False):
    print(f"  {label:<9}  {row[1]:.3f} malignant")

figure = plots.plot_importances(model, n_features=8).figure
figure.savefig("classification.svg")
