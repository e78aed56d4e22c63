"""Fits of every public class, tree method, loss, sampler, kind of column and storage."""

import hashlib

import numpy as np
from sklearn.tree import DecisionTreeClassifier as SklearnTree

import arboost as ab
from support.recorded_tables import (
    N_ROWS,
    counts,
    flags,
    frame,
    framed_signal,
    heavy_tail,
    huge_weights,
    numbers,
    signal,
    sparse,
    three_classes,
    two_classes,
    uniform,
    weights,
)


def squared_loss():
    return ab.CustomLoss(
        name="squared", gradients=lambda y, score, weight: (weight * (score - y), weight)
    )


def booster(X, y, **params):
    """Return a fitted gradient boosting regressor of a few rounds."""
    fit = {name: params.pop(name) for name in ("sample_weight", "offset") if name in params}
    given = {"n_estimators": 8, "verbose": 0} | params
    return ab.GradientBoostingRegressor(**given).fit(X, y, **fit)


def class_booster(X, y, **params):
    """Return a fitted gradient boosting classifier of a few rounds."""
    fit = {name: params.pop(name) for name in ("sample_weight", "offset") if name in params}
    given = {"n_estimators": 8, "verbose": 0} | params
    return ab.GradientBoostingClassifier(**given).fit(X, y, **fit)


def _losses():
    cases = {}
    for loss in ("squared_error", "absolute_error", "huber", "quantile"):
        cases[f"loss {loss}"] = lambda loss=loss: booster(numbers(), signal(), loss=loss)
    for loss in ("poisson", "gamma", "tweedie"):
        cases[f"loss {loss}"] = lambda loss=loss: booster(numbers(), counts() + 0.5, loss=loss)
    cases["loss exponential"] = lambda: class_booster(numbers(), two_classes(), loss="exponential")
    cases["loss log_loss"] = lambda: class_booster(numbers(), two_classes())
    cases["loss softmax"] = lambda: class_booster(numbers(), three_classes())
    cases["loss softmax, vector leaves"] = lambda: class_booster(
        numbers(), three_classes(), multi_strategy="multi_output_tree"
    )
    cases["loss of three quantiles"] = lambda: booster(
        numbers(), signal(), loss="quantile", alpha=[0.1, 0.5, 0.9]
    )
    cases["loss of functions"] = lambda: booster(numbers(), signal(), loss=squared_loss())
    for loss in ("squared_error", "absolute_error", "huber", "poisson"):
        cases[f"Friedman's boosting, {loss}"] = lambda loss=loss: booster(
            numbers(), counts() + 0.5, loss=loss, boosting="gradient"
        )
    cases["Friedman's boosting, softmax"] = lambda: class_booster(
        numbers(), three_classes(), boosting="gradient"
    )
    return cases


def _settings():
    """Return boosters that differ in one setting each."""
    settings = {
        "exact": {"tree_method": "exact"},
        "approx": {"tree_method": "approx", "sketch_eps": 0.05},
        "approx, local": {"tree_method": "approx", "sketch_scope": "local", "sketch_eps": 0.05},
        "bins of two bytes": {"max_bins": 400},
        "few bins": {"max_bins": 7},
        "best first": {"grow_policy": "leafwise", "max_leaves": 12, "max_depth": None},
        "by level": {"grow_policy": "depthwise", "max_depth": 4},
        "penalties": {"gamma": 0.5, "reg_alpha": 0.3, "reg_lambda": 3.0, "max_delta_step": 0.4},
        "least rows and weight": {"min_samples_leaf": 25, "min_child_weight": 12.0},
        "uniform sample": {"subsample": 0.5, "sampling_method": "uniform"},
        "gradient-based sample": {"subsample": 0.3, "sampling_method": "gradient_based"},
        "GOSS": {"sampling_method": "goss", "learning_rate": 0.5},
        "column samples": {
            "colsample_bytree": 0.7,
            "colsample_bylevel": 0.8,
            "colsample_bynode": 0.9,
        },
        "monotone": {"monotone_constraints": {0: 1, 2: -1}, "max_depth": 5},
        "interactions": {"interaction_constraints": [[0, 1], [2, 3, 4, 5]]},
        "DART": {"rate_drop": 0.4, "one_drop": True},
        "DART, weighted forest": {
            "rate_drop": 0.4,
            "sample_type": "weighted",
            "normalize_type": "forest",
        },
        "parallel trees": {"num_parallel_tree": 3, "subsample": 0.6, "sampling_method": "uniform"},
        "base score": {"base_score": 1.5},
        "early stopping": {"n_iter_no_change": 3, "n_estimators": 40, "learning_rate": 0.5},
        "missing number": {"missing": 3.0},
        "weights": {"sample_weight": weights()},
        "zero weights": {"sample_weight": np.where(uniform(N_ROWS, 42) < 0.3, 0.0, weights())},
    }
    cases = {
        f"regression, {name}": lambda params=params: booster(numbers(), signal(), **params)
        for name, params in settings.items()
    }
    cases["automatic fit of numbers"] = lambda: booster(
        numbers()[:200], signal()[:200], n_estimators="auto", learning_rate=0.3
    )
    cases["automatic fit of classes"] = lambda: class_booster(
        numbers()[:200], two_classes()[:200], n_estimators="auto", learning_rate=0.3
    )
    cases["class weights"] = lambda: class_booster(
        numbers(), three_classes(), class_weight="balanced"
    )
    cases["scale_pos_weight"] = lambda: class_booster(
        numbers(), two_classes(), scale_pos_weight=2.0, sample_weight=weights()
    )
    cases["labels of strings"] = lambda: class_booster(
        numbers(), np.array(["no", "yes"], dtype=object)[two_classes()]
    )
    cases["one class"] = lambda: class_booster(numbers(), np.ones(N_ROWS, int))
    cases["continued training"] = _continued
    return cases


def _continued():
    first = booster(numbers(), signal(), n_estimators=4)
    more = ab.GradientBoostingRegressor(n_estimators=4, verbose=0)
    return more.fit(numbers(), signal(), init_model=first)


def _offsets():
    """Return boosters that start from an offset of each row."""
    start = np.column_stack([uniform(N_ROWS, 60 + k) - 0.5 for k in range(3)])
    one = start[:, 0].copy()
    settings = {
        "poisson": {"loss": "poisson"},
        "gamma": {"loss": "gamma", "sample_weight": weights()},
        "huber": {"loss": "huber"},
        "Friedman's boosting": {"loss": "tweedie", "boosting": "gradient"},
        "one step a round": {"boosting": "gradient", "line_search": "round", "loss": "poisson"},
        "DART": {"rate_drop": 0.4},
        "uniform sample": {"subsample": 0.5, "sampling_method": "uniform"},
        "parallel trees": {"num_parallel_tree": 3, "subsample": 0.6, "sampling_method": "uniform"},
        "early stopping": {"n_iter_no_change": 3, "n_estimators": 40, "learning_rate": 0.5},
        "base score": {"base_score": 1.5},
    }
    cases = {
        f"offset, {name}": lambda params=params: booster(
            numbers(), counts() + 0.5, offset=one, **params
        )
        for name, params in settings.items()
    }
    cases["offset of three quantiles"] = lambda: booster(
        numbers(), signal(), loss="quantile", alpha=[0.1, 0.5, 0.9], offset=start
    )
    cases["offset, log_loss"] = lambda: class_booster(numbers(), two_classes(), offset=one)
    cases["offset, exponential"] = lambda: class_booster(
        numbers(), two_classes(), loss="exponential", offset=one
    )
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        cases[f"offset, softmax, {strategy}"] = lambda strategy=strategy: class_booster(
            numbers(), three_classes(), multi_strategy=strategy, offset=start
        )
    return cases


def _storages():
    return {
        "shared columns": lambda: booster(flags(), signal()),
        "no shared columns": lambda: booster(flags(), signal(), bundling=False),
        "conflicts allowed": lambda: booster(flags(), signal(), max_conflict_rate=0.05),
        "sparse": lambda: booster(sparse(), signal()),
        "sparse, exact": lambda: booster(sparse(), signal(), tree_method="exact"),
        "sparse, classes": lambda: class_booster(sparse(), three_classes()),
        "float32 columns": lambda: booster(np.asfortranarray(numbers(), np.float32), signal()),
        "frame": lambda: booster(frame(), framed_signal()),
        "frame, classes": lambda: class_booster(frame(), np.digitize(framed_signal(), [2.2, 4.0])),
        "frame, sampled": lambda: booster(
            frame(), framed_signal(), sampling_method="goss", sample_weight=weights()
        ),
        "one-vs-rest levels": lambda: booster(frame(), framed_signal(), max_cat_to_onehot=40),
        "named categories": lambda: booster(numbers(), signal(), categorical_features=[3]),
        "dataset": lambda: booster(ab.Dataset(frame(), framed_signal()), None),
    }


def _adaboosts():
    def classes(y=two_classes, X=numbers, **params):
        given = {"n_estimators": 6, "verbose": 0} | params
        return ab.AdaBoostClassifier(**given).fit(X(), y())

    def values(y=signal, X=numbers, **params):
        given = {"n_estimators": 6, "verbose": 0} | params
        return ab.AdaBoostRegressor(**given).fit(X(), y())

    cases = {
        "AdaBoost": classes,
        "AdaBoost, three classes": lambda: classes(three_classes, max_depth=2),
        "AdaBoost, exact": lambda: classes(tree_method="exact", max_leaves=6, max_depth=None),
        "AdaBoost, drawn": lambda: classes(resample=True, oob_score=True),
        "AdaBoost, frame": lambda: classes(X=frame),
        "AdaBoost, estimator": lambda: classes(estimator=SklearnTree(max_depth=2)),
        "AdaBoost, early stopping": lambda: classes(n_iter_no_change=2, n_estimators=30),
        "R2, drawn": lambda: values(resample=True, oob_score=True),
        "R2, frame": lambda: values(framed_signal, frame),
    }
    for algorithm in ("real", "gentle"):
        cases[f"AdaBoost, {algorithm}"] = lambda name=algorithm: classes(
            three_classes, algorithm=name
        )
    for loss in ("linear", "square", "exponential"):
        cases[f"R2, {loss}"] = lambda loss=loss: values(loss=loss)
    return cases


def _trees(kind, y, X=None, sample_weight=None, **params):
    given = {"verbose": 0} | ({} if kind.startswith("Dec") else {"n_estimators": 5}) | params
    X = numbers() if X is None else X
    return getattr(ab, kind)(**given).fit(X, y, sample_weight=sample_weight)


def _forests():
    fit, cases = _trees, {}
    for family in ("DecisionTree", "RandomForest", "ExtraTrees"):
        for name, kind, criteria, y in (
            ("classes", f"{family}Classifier", ("gini", "entropy"), three_classes),
            ("numbers", f"{family}Regressor", ("squared_error", "poisson"), counts),
        ):
            for criterion in criteria:
                cases[f"{family} of {name}, {criterion}"] = (
                    lambda kind=kind, criterion=criterion, y=y: fit(kind, y(), criterion=criterion)
                )
    return cases | {
        "tree of medians": lambda: fit(
            "DecisionTreeRegressor", signal(), criterion="absolute_error", max_depth=4
        ),
        "tree, random cuts": lambda: fit(
            "DecisionTreeClassifier", two_classes(), splitter="random"
        ),
        "tree, pruned": lambda: fit("DecisionTreeClassifier", two_classes(), ccp_alpha=0.004),
        "tree, exact": lambda: fit("DecisionTreeRegressor", signal(), tree_method="exact"),
        "tree, several targets": lambda: fit(
            "DecisionTreeClassifier", np.column_stack([two_classes(), three_classes()])
        ),
        "forest, out of bag": lambda: fit("RandomForestClassifier", two_classes(), oob_score=True),
        "forest, out of bag, weights": lambda: fit(
            "RandomForestRegressor", signal(), sample_weight=weights(), oob_score=True
        ),
        "forest, quantiles": lambda: fit("RandomForestRegressor", signal(), quantiles=True),
        "forest, subsample weights": lambda: fit(
            "RandomForestClassifier", three_classes(), class_weight="balanced_subsample"
        ),
        "forest, weights": lambda: fit(
            "RandomForestRegressor", signal(), sample_weight=weights(), max_samples=0.5
        ),
        "forest, monotone": lambda: fit(
            "RandomForestRegressor", signal(), monotonic_cst=[1, 0, 0, 0, 0, 0], max_depth=5
        ),
        "forest, frame": lambda: fit("RandomForestRegressor", framed_signal(), frame()),
        "forest, sparse": lambda: fit("RandomForestClassifier", two_classes(), sparse()),
        "forest, shared columns": lambda: fit("ExtraTreesRegressor", signal(), flags()),
        "forest, several targets": lambda: fit(
            "RandomForestRegressor", np.column_stack([signal(), counts()])
        ),
    }


def _heavy_tails():
    fit = _trees
    return {
        "forest, heavy tail": lambda: fit("RandomForestRegressor", heavy_tail(), oob_score=True),
        "forest, heavy tail, frame": lambda: fit("RandomForestRegressor", heavy_tail(), frame()),
        "extra trees, heavy tail of one target": lambda: fit(
            "ExtraTreesRegressor", np.column_stack([signal(), heavy_tail()]), max_leaf_nodes=40
        ),
        "tree, heavy tail and huge weights": lambda: fit(
            "DecisionTreeRegressor", heavy_tail(), sample_weight=huge_weights(), splitter="random"
        ),
        "tree, heavy tail, exact": lambda: fit(
            "DecisionTreeRegressor", heavy_tail(), tree_method="exact", min_impurity_decrease=1e-6
        ),
        "tree of medians, heavy tail": lambda: fit(
            "DecisionTreeRegressor", heavy_tail(), criterion="absolute_error", max_depth=6
        ),
        "tree of counts, heavy tail": lambda: fit(
            "DecisionTreeRegressor", np.abs(heavy_tail()), criterion="poisson", min_samples_leaf=3
        ),
        "tree of classes, huge weights": lambda: fit(
            "DecisionTreeClassifier", three_classes(), sample_weight=huge_weights()
        ),
        "extra trees of two classes, huge weights": lambda: fit(
            "ExtraTreesClassifier",
            two_classes(),
            sample_weight=huge_weights(),
            criterion="entropy",
        ),
    }


def _ensembles():
    members = lambda: [  # noqa: E731
        ("booster", ab.GradientBoostingClassifier(n_estimators=4, verbose=0)),
        ("forest", ab.RandomForestClassifier(n_estimators=3, verbose=0)),
    ]
    values = lambda: [  # noqa: E731
        ("booster", ab.GradientBoostingRegressor(n_estimators=4, verbose=0)),
        ("trees", ab.ExtraTreesRegressor(n_estimators=3, verbose=0)),
    ]
    tree = lambda: ab.DecisionTreeClassifier(max_depth=4)  # noqa: E731
    X = np.nan_to_num(numbers())
    return {
        "bagging": lambda: ab.BaggingClassifier(
            tree(), n_estimators=4, oob_score=True, verbose=0
        ).fit(numbers(), three_classes()),
        "bagging of features": lambda: ab.BaggingClassifier(
            tree(), n_estimators=4, max_features=0.5, bootstrap=False, max_samples=0.7, verbose=0
        ).fit(numbers(), two_classes()),
        "bagging of boosters": lambda: ab.BaggingRegressor(
            ab.GradientBoostingRegressor(n_estimators=3), n_estimators=3, verbose=0
        ).fit(frame(), framed_signal()),
        "stack of classifiers": lambda: ab.StackingClassifier(
            members(),
            final_estimator=ab.GradientBoostingClassifier(n_estimators=3, verbose=0),
            verbose=0,
        ).fit(X, three_classes()),
        "stack of regressors": lambda: ab.StackingRegressor(
            values(),
            final_estimator=ab.GradientBoostingRegressor(n_estimators=3, verbose=0),
            passthrough=True,
            verbose=0,
        ).fit(numbers(), signal()),
        "votes": lambda: ab.VotingClassifier(members(), voting="soft", verbose=0).fit(
            numbers(), two_classes()
        ),
        "mean of regressors": lambda: ab.VotingRegressor(
            values(), weights=[1.0, 2.0], verbose=0
        ).fit(numbers(), signal()),
    }


def all_fits():
    """Return the fits by name, each as a function without arguments."""
    return {
        **_losses(),
        **_settings(),
        **_offsets(),
        **_storages(),
        **_adaboosts(),
        **_forests(),
        **_heavy_tails(),
        **_ensembles(),
    }


def models_of(estimator):
    """Return the models of an estimator and of its members, in their order."""
    model = getattr(estimator, "model_", None)
    if isinstance(model, ab.Predictor):
        return [model]
    found = []
    members = list(getattr(estimator, "estimators_", []))
    for member in [*members, getattr(estimator, "final_estimator_", None)]:
        found += [] if member is None else models_of(member)
    return found


def digest(*parts):
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return hashed.hexdigest()[:32]


def digests_of(estimator, folder):
    """Return the digests of a fitted estimator.

    Returns
    -------
    dict
        ``"files"``: digest of the model files. ``"trees"``: digest of the trees and start scores in
        the files, without parameters and metadata. ``"out of bag"``: digest of the out-of-bag
        scores, where they exist.
    """
    files, trees = [], []
    for number, model in enumerate(models_of(estimator)):
        path = folder / f"{number}.arb"
        model.save(path)
        files.append(path.read_bytes())
        forest = model.forest
        trees += [forest.tree_start, forest.feature, forest.threshold, forest.left, forest.value]
        trees += [forest.default_left, forest.gain, forest.cover, forest.level_sets]
        trees.append(np.asarray(model.base_score))
    found = {"files": digest(*files), "trees": digest(*trees)} if files else {}
    for name in ("oob_decision_function_", "oob_prediction_", "estimator_weights_"):
        if hasattr(estimator, name):
            found[name] = digest(np.asarray(getattr(estimator, name), np.float64))
    return found


# Sorted values and medians need all rows in the memory of one process; the last two grow no tree of
# the engine.
_OTHERS = (
    "exact",
    "absolute error",
    "tree of medians",
    "one class",
    "AdaBoost, estimator",
)


def grows_on_bins(name: str) -> bool:
    """Whether rows of a recorded fit may be elsewhere than in the memory of one process."""
    return not any(word in name for word in _OTHERS)
