"""Small fits of each kind on a device: python -m support.device_fits runs them all.

`make sanitize-cuda` does so under compute-sanitizer, and a test under a shuffled emulator.
"""

import numpy as np

import arboost

_rng = np.random.default_rng(0)
N = 600
X = _rng.integers(0, 40, (N, 4)) / 2
X[:, 1] = _rng.integers(0, 6, N)
X[_rng.random(X.shape) < 0.03] = np.nan
y = np.nan_to_num(X[:, 0]) + _rng.integers(0, 32, N) / 8
weight = _rng.integers(1, 4, N) / 2
_CLASSES = np.floor(y).astype(int) % 3


def _booster(**params):
    return lambda device: arboost.GradientBoostingRegressor(
        **{"n_estimators": 3, "max_depth": 4, "verbose": 0} | params, device=device
    ).fit(X, y, sample_weight=weight)


def _classifier(strategy):
    return lambda device: arboost.GradientBoostingClassifier(
        n_estimators=2, max_depth=3, verbose=0, multi_strategy=strategy, device=device
    ).fit(X, _CLASSES)


def _forest(kind, target, **params):
    return lambda device: kind(**{"n_estimators": 2} | params, device=device).fit(X, target)


FITS = {
    "plain": _booster(),
    "leaves": _booster(max_leaves=12, max_depth=None, grow_policy="leafwise"),
    "leaf size": _booster(min_samples_leaf=15, loss="poisson"),
    "two-byte bins": _booster(max_bins=400),
    "candidates of rounds": _booster(tree_method="approx", sketch_eps=0.1),
    "categories": _booster(categorical_features=[1]),
    "monotone": _booster(monotone_constraints={0: 1}),
    "rows": _booster(subsample=0.5),
    "GOSS": _booster(sampling_method="goss", learning_rate=0.5),
    "gradient-based": _booster(sampling_method="gradient_based", subsample=0.3),
    "absolute error": _booster(loss="absolute_error"),
    "Huber": _booster(loss="huber"),
    "Friedman": _booster(boosting="gradient", loss="poisson"),
    "DART": _booster(rate_drop=0.5),
    "early stopping": _booster(n_iter_no_change=2),
    "classes": _classifier("one_output_per_tree"),
    "vector leaves": _classifier("multi_output_tree"),
    "forest": _forest(arboost.RandomForestClassifier, _CLASSES),
    "means": _forest(arboost.RandomForestRegressor, y),
    "levels": _forest(arboost.RandomForestRegressor, y, categorical_features=[1]),
    "out of bag": _forest(
        arboost.RandomForestRegressor, y, n_estimators=8, max_samples=0.2, oob_score=True
    ),
    "extra trees": _forest(arboost.ExtraTreesRegressor, y),
    "AdaBoost": _forest(arboost.AdaBoostClassifier, _CLASSES, max_depth=2),
}


def outputs(name: str, device: str) -> list[np.ndarray]:
    """Predictions and SHAP values of a fit, by the device that trained it."""
    model = FITS[name](device)
    return [model.predict(X), np.asarray(model.shap_values(X[:40]))]


def main() -> None:
    for name in FITS:
        outputs(name, "cuda")
        print(name, flush=True)


if __name__ == "__main__":
    main()
