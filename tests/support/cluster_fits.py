"""Fits that workers share, compared with the fit of one process on the same rows."""

from __future__ import annotations

from itertools import pairwise

import arboost
from arboost.distributed.training import TrainingListener, TrainingProgram, finish_fit
from support.local_programs import Parts, run_program
from support.streamed import features, frame, model_bytes

N_ROWS = 700
BOOSTED = {"n_estimators": 4, "max_depth": 3}

# Target, estimator, and arguments of the fit: "validates" has an evaluation set, "qid" queries.
FITS = {
    "regression": ("number", arboost.GradientBoostingRegressor(**BOOSTED), {}),
    "two classes": ("two", arboost.GradientBoostingClassifier(**BOOSTED), {}),
    "three classes": ("three", arboost.GradientBoostingClassifier(**BOOSTED), {}),
    "vector leaves": (
        "three",
        arboost.GradientBoostingClassifier(multi_strategy="multi_output_tree", **BOOSTED),
        {},
    ),
    "weights": ("number", arboost.GradientBoostingRegressor(**BOOSTED), {"weight": "weight"}),
    "class weights": (
        "two",
        arboost.GradientBoostingClassifier(class_weight="balanced", **BOOSTED),
        {"weight": "weight"},
    ),
    "rounds found": (
        "two",
        arboost.GradientBoostingClassifier(preset="fast", max_depth=2),
        {},
    ),
    "held-out rows": (
        "three",
        arboost.GradientBoostingClassifier(n_estimators=30, n_iter_no_change=3, max_depth=2),
        {},
    ),
    "evaluation set": (
        "two",
        arboost.GradientBoostingClassifier(
            n_estimators=30, n_iter_no_change=3, max_depth=2, eval_metric=["auc", "log_loss"]
        ),
        {"validates": True},
    ),
    "best first": (
        "number",
        arboost.GradientBoostingRegressor(
            n_estimators=4,
            max_depth=None,
            max_leaves=12,
            grow_policy="leafwise",
            min_samples_leaf=5,
        ),
        {},
    ),
    "columns drawn": (
        "number",
        arboost.GradientBoostingRegressor(
            colsample_bytree=0.7, colsample_bylevel=0.8, colsample_bynode=0.7, **BOOSTED
        ),
        {},
    ),
    "rows drawn": ("two", arboost.GradientBoostingClassifier(subsample=0.4, **BOOSTED), {}),
    "goss": (
        "two",
        arboost.GradientBoostingClassifier(
            sampling_method="goss", learning_rate=0.5, top_rate=0.3, other_rate=0.2, **BOOSTED
        ),
        {},
    ),
    "gradient-based rows": (
        "number",
        arboost.GradientBoostingRegressor(
            sampling_method="gradient_based", subsample=0.3, **BOOSTED
        ),
        {},
    ),
    "approximate": (
        "three",
        arboost.GradientBoostingClassifier(tree_method="approx", sketch_eps=0.05, **BOOSTED),
        {"weight": "weight"},
    ),
    "approximate by node": (
        "number",
        arboost.GradientBoostingRegressor(
            tree_method="approx", sketch_scope="local", sketch_eps=0.1, **BOOSTED
        ),
        {},
    ),
    "absolute error": (
        "number",
        arboost.GradientBoostingRegressor(loss="absolute_error", **BOOSTED),
        {},
    ),
    "huber": ("number", arboost.GradientBoostingRegressor(loss="huber", **BOOSTED), {}),
    "friedman": ("two", arboost.GradientBoostingClassifier(boosting="gradient", **BOOSTED), {}),
    "line search": (
        "number",
        arboost.GradientBoostingRegressor(boosting="gradient", line_search="round", **BOOSTED),
        {},
    ),
    "dropout": ("number", arboost.GradientBoostingRegressor(rate_drop=0.5, **BOOSTED), {}),
    "parallel trees": (
        "number",
        arboost.GradientBoostingRegressor(num_parallel_tree=3, subsample=0.5, **BOOSTED),
        {},
    ),
    "monotone": (
        "number",
        arboost.GradientBoostingRegressor(monotone_constraints={"real": 1}, **BOOSTED),
        {},
    ),
    "ranking": (
        "three",
        arboost.GradientBoostingRanker(min_child_weight=0.001, **BOOSTED),
        {"qid": "few"},
    ),
    "ranking, evaluation set": (
        "three",
        arboost.GradientBoostingRanker(
            loss="listwise", n_estimators=30, n_iter_no_change=3, max_depth=2
        ),
        {"qid": "few", "weight": "few_weight", "validates": True},
    ),
    "adaboost": ("three", arboost.AdaBoostClassifier(n_estimators=4, max_depth=2), {}),
    "adaboost by draws": (
        "two",
        arboost.AdaBoostClassifier(n_estimators=4, resample=True),
        {"weight": "weight"},
    ),
    "adaboost r2, mean": (
        "number",
        arboost.AdaBoostRegressor(n_estimators=4, aggregation="mean"),
        {},
    ),
    "adaboost r2": ("number", arboost.AdaBoostRegressor(n_estimators=4), {}),
    "random forest": (
        "three",
        arboost.RandomForestClassifier(n_estimators=4, oob_score=False),
        {},
    ),
    "forest with weights": (
        "number",
        arboost.RandomForestRegressor(n_estimators=4, max_depth=5),
        {"weight": "weight"},
    ),
    "extra trees": ("two", arboost.ExtraTreesClassifier(n_estimators=4), {}),
    "decision tree": ("number", arboost.DecisionTreeRegressor(max_depth=6), {}),
}

# Bounds of the parts of each worker, as shares of the rows; some workers have none.
PARTITIONS = {
    "one": [[0.0, 0.3, 1.0]],
    "two": [[0.0, 0.51], [0.51, 0.6, 1.0]],
    "three": [[0.0, 0.1], [0.1, 0.11, 0.9], [0.9, 1.0]],
    "five, some empty": [[0.0, 0.0], [0.0, 0.2, 0.3], [], [0.3, 0.99], [0.99, 1.0]],
}


def table_of(name, n_rows=N_ROWS):
    """Return the table of a fit, the names of its target and weights, and whether it validates."""
    target, _, arguments = FITS[name]
    table = features(frame(n_rows), target)
    if "qid" in arguments:  # a query has one weight
        table["few_weight"] = 1.0 + table["few"] % 2
    if "weight" not in arguments:
        table = table.drop(columns="weight")
    return table, target, arguments.get("weight"), arguments.get("validates", False)


def options_of(name):
    """Return further arguments of a fit."""
    return {"qid": FITS[name][2]["qid"]} if "qid" in FITS[name][2] else {}


def estimator_of(name, **params):
    """Return a new estimator of a fit, without a progress bar, with some other parameters."""
    estimator = FITS[name][1]
    return type(estimator)(**(estimator.get_params(deep=False) | {"verbose": 0} | params))


def parts_of(table, partition):
    """Return the tables of each worker."""
    n = len(table)
    return [[table.iloc[int(n * a) : int(n * b)] for a, b in pairwise(of)] for of in partition]


def fitted(name, partition, losses=(), callbacks=(), checkpoint=None, **params):
    """Return the model of workers in threads."""
    table, target, weight, validates = table_of(name)
    tables, columns = {"train": parts_of(table, partition)}, {"train": (target, weight)}
    if validates:
        tables["validation_0"] = parts_of(table.iloc[::3], partition)
        columns["validation_0"] = (target, weight)
    estimator = estimator_of(name, **params)
    program = TrainingProgram(
        estimator,
        columns,
        options_of(name),
        eval_tables=("validation_0",) if validates else (),
        has_callbacks=bool(callbacks),
        checkpoint=checkpoint,
    )
    results = run_program(program, tables, TrainingListener(callbacks, 0), losses)
    return finish_fit(estimator, results[0])


def expected_bytes(name, folder):
    """Return the model file of one process."""
    table, target, weight, validates = table_of(name)
    options = options_of(name)
    if validates:
        queries = options.values()
        options["eval_set"] = [(Parts([table.iloc[::3]]), target, *queries, weight)]
    model = estimator_of(name).fit(Parts([table]), target, weight, **options)
    return model_bytes(model, folder)
