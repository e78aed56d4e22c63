"""Random forests and their out-of-bag curve.

About 37 % of the rows are not drawn for a tree: they are out of bag for it, a validation set for
free. The out-of-bag error of more and more trees shows how many are enough. It is close to the
error on test rows, and a little above it: each row is predicted by a third of the trees only.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from arboost import RandomForestClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

forest = RandomForestClassifier(200, random_state=0, warm_start=True, oob_score=True)
sizes = [25, 30, 40, 60, 80, 100, 150, 200]
errors = []
for size in sizes:  # each fit adds trees to those of the last one
    forest.set_params(n_estimators=size).fit(X_train, y_train)
    errors.append((1 - forest.oob_score_, 1 - forest.score(X_test, y_test)))

print("trees  out-of-bag error  test error")
for size, (out_of_bag, test) in zip(sizes, errors, strict=True):
    print(f"{size:5d} {out_of_bag:17.3f} {test:11.3f}")

out_of_bag_trees = 200 * np.exp(-1)
print(f"\na row is out of bag for about {out_of_bag_trees:.0f} of the 200 trees")

figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
axes.plot(sizes, errors, marker="o", label=["out of bag", "test rows"])
axes.set(xlabel="trees", ylabel="error", ylim=(0, None))
axes.legend()
figure.savefig("forest_oob.svg")
