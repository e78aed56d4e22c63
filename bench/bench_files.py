"""How small are model files, and how long do saving and loading take?

Peers: boosters of the same data, rounds and depth, and forests. Sizes are also per node, because
libraries prune differently. The load time is that of the library's own call; the file is in the
system's cache, and the library has loaded a file before.

Packing: arboost's packed trees against their plain arrays under zlib and zstd, for six
models. The load time ends with a checked forest. Every form must give back the same bytes.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from support import data, forest_forms, harness
from support.peers import installed

KB = 1e3
MS = 1e-3
HEADER = ("form", "nodes", "KB", "bytes a node", "save ms", "load ms")
LONG = 3.0  # seconds: a form whose saves have taken so long in all is not saved again
CATEGORIES, LEVELS = 7, 60
CLASSES = 5


@dataclass(frozen=True)
class Contestant:
    """A fitted model: its number of nodes, its save and load, and a check of a loaded model."""

    nodes: int
    save: Callable[[Path], object]
    load: Callable[[Path], object]
    check: Callable[[Any], bool] = lambda _loaded: True


def main() -> None:
    """Fit the models, measure their files, print and save the figures."""
    parser = harness.parser(__doc__, "files")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--trees", type=int, default=100, help="of the forests")
    questions = ("peers", "packing")
    parser.add_argument("--only", nargs="+", choices=questions, default=questions)
    parser.set_defaults(repeats=20)
    args = harness.parse(parser)
    X, y = data.higgs_like(args.rows, args.features)
    sizes = {"rows": args.rows, "rounds": args.rounds, "depth": args.depth, "trees": args.trees}
    if "peers" in args.only:
        title = f"{args.rounds} trees of depth {args.depth}, {args.features} features"
        of_boosters = contest(args, boosters(args, X, y), title)
        title = f"{args.trees} full trees, {args.rows:,} rows"
        of_forests = contest(args, forests(args, X, y), title)
        harness.save(args, sizes | {"boosters": of_boosters, "forests": of_forests})
    if "packing" in args.only:
        found = {
            title: contest(args, packings(model), f"packing, {title}")
            for title, model in packed_models(args, X, y).items()
        }
        args.name = "packing"
        harness.save(args, sizes | {"models": found})


def row(name: str, one: dict[str, float]) -> tuple[Any, ...]:
    """One line of the table."""
    by_node = one["bytes"] / one["nodes"]
    return name, one["nodes"], one["bytes"] / KB, by_node, one["save"] / MS, one["load"] / MS


def contest(
    args: Any, contestants: dict[str, Contestant], title: str
) -> dict[str, dict[str, float]]:
    """Size and best times of each contestant, printed as a table; contestants alternate."""
    saves: dict[str, list[float]] = {name: [] for name in contestants}
    loads: dict[str, list[float]] = {name: [] for name in contestants}
    start, before = time.perf_counter(), harness.others_seconds()
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name.replace(" ", ".") for name in contestants}
        for _ in range(args.repeats + 1):  # one more: the first call imports modules
            for name, one in contestants.items():
                if sum(saves[name]) < LONG:
                    saves[name].append(_seconds(one.save, paths[name]))
                loads[name].append(_seconds(one.load, paths[name]))
        for name, one in contestants.items():
            if not one.check(one.load(paths[name])):
                raise SystemExit(f"{name}: the loaded model differs from the saved one")
        others = (harness.others_seconds() - before) / (time.perf_counter() - start)
        found = {
            name: {
                "nodes": one.nodes,
                "bytes": paths[name].stat().st_size,
                "save": min(saves[name]),
                "load": min(loads[name]),
                "other_cores": round(others, 2),
            }
            for name, one in contestants.items()
        }
    harness.show(
        title + harness.disturbance(others), HEADER, [row(*item) for item in found.items()]
    )
    return found


def _seconds(action: Callable[[Path], object], path: Path) -> float:
    start = time.perf_counter()
    action(path)
    return time.perf_counter() - start


def boosters(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """Boosters of all installed libraries, in each of their file formats."""
    import arboost

    model = arboost.GradientBoostingClassifier(
        n_estimators=args.rounds, max_depth=args.depth, max_leaves=None
    )
    fitted = model.fit(X, y).model_
    found = {
        "arboost": Contestant(fitted.forest.n_nodes, fitted.save, arboost.load),
        "arboost arrays, mapped": Contestant(
            fitted.forest.n_nodes,
            lambda path: fitted.save(path, layout="arrays"),
            lambda path: arboost.load(path, mmap=True),
        ),
        "arboost json": Contestant(fitted.forest.n_nodes, fitted.to_json, arboost.load),
    }
    for name, make in (("lightgbm", lightgbm), ("xgboost", xgboost), ("catboost", catboost)):
        if (not args.peers or name in args.peers) and installed(name):
            found |= make(args, X, y)
    return found


def lightgbm(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """LightGBM's text format."""
    import lightgbm as lgb

    settings = {"objective": "binary", "num_leaves": 2**args.depth, "max_depth": args.depth}
    settings |= {"min_data_in_leaf": 1, "lambda_l2": 1.0, "verbosity": -1}
    booster = lgb.train(settings, lgb.Dataset(X, y), args.rounds)
    nodes = sum(2 * one["num_leaves"] - 1 for one in booster.dump_model()["tree_info"])
    load = lambda path: lgb.Booster(model_file=path)  # noqa: E731
    return {"lightgbm text": Contestant(nodes, booster.save_model, load)}


def xgboost(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """XGBoost's UBJSON and JSON formats."""
    import xgboost as xgb

    settings = {"objective": "binary:logistic", "max_depth": args.depth, "eta": 0.1}
    settings["max_bin"] = 255
    booster = xgb.train(settings, xgb.QuantileDMatrix(X, y, max_bin=255), args.rounds)
    nodes = sum(text.count("\n") for text in booster.get_dump())

    # The file name's suffix chooses the format.
    one = Contestant(nodes, booster.save_model, lambda path: xgb.Booster(model_file=path))
    return {"xgboost ubj": one, "xgboost json": one}


def catboost(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """CatBoost's binary format, with depthwise trees as in the other libraries."""
    import catboost as cat

    model = cat.CatBoostClassifier(
        iterations=args.rounds,
        depth=args.depth,
        grow_policy="Depthwise",
        learning_rate=0.1,
        verbose=False,
        allow_writing_files=False,
    ).fit(X, y)
    nodes = sum(2 * int(leaves) - 1 for leaves in model.get_tree_leaf_counts())
    load = lambda path: cat.CatBoostClassifier().load_model(str(path))  # noqa: E731
    return {"catboost cbm": Contestant(nodes, lambda path: model.save_model(str(path)), load)}


def forests(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """Forests of full depth, of arboost and of scikit-learn."""
    import arboost

    ours = arboost.RandomForestClassifier(n_estimators=args.trees, random_state=0).fit(X, y)
    found = {"arboost": Contestant(ours.model_.forest.n_nodes, ours.save, arboost.load)}
    if (not args.peers or "scikit-learn-hgb" in args.peers) and find_spec("sklearn"):
        from sklearn.ensemble import RandomForestClassifier

        theirs = RandomForestClassifier(args.trees, random_state=0, n_jobs=-1).fit(X, y)
        nodes = sum(tree.tree_.node_count for tree in theirs.estimators_)
        found["scikit-learn pickle"] = Contestant(
            nodes,
            lambda path: path.write_bytes(pickle.dumps(theirs, protocol=5)),
            lambda path: pickle.loads(path.read_bytes()),
        )
    return found


def packed_models(args: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Models whose trees differ in the numbers that they hold."""
    import arboost

    rng = np.random.default_rng(data.SEED)
    score = data.log_odds(X)
    levels = rng.integers(0, LEVELS, (len(X), CATEGORIES))
    effect = rng.normal(size=(CATEGORIES, LEVELS))[np.arange(CATEGORIES), levels].sum(axis=1)
    with_levels = np.column_stack([X[:, CATEGORIES:], levels])
    by_effect = score + effect > np.median(score + effect)
    parts = np.digitize(score, np.quantile(score, np.arange(1, CLASSES) / CLASSES))

    def booster(rounds: int, **extra: Any) -> Any:
        limits = {"max_depth": args.depth, "max_leaves": None, "random_state": 0}
        return arboost.GradientBoostingClassifier(n_estimators=rounds, **limits, **extra)

    columns = list(range(args.features - CATEGORIES, args.features))
    fits = {
        f"booster, {args.rounds} trees": (booster(args.rounds), X, y),
        f"booster with {CATEGORIES} categories": (
            booster(args.rounds, categorical_features=columns),
            with_levels,
            by_effect,
        ),
        f"booster, {CLASSES} classes": (booster(args.rounds // CLASSES), X, parts),
        f"AdaBoost, {args.rounds} stumps": (
            arboost.AdaBoostClassifier(n_estimators=args.rounds, random_state=0),
            X,
            y,
        ),
        "random forest, classification": (
            arboost.RandomForestClassifier(args.trees, random_state=0),
            X,
            y,
        ),
        "random forest, regression": (
            # Its trees are four times as large, and zstd 19 takes seconds for each.
            arboost.RandomForestRegressor(max(1, args.trees // 5), random_state=0),
            X,
            score + rng.normal(size=len(X)),
        ),
    }
    return {title: one.fit(table, labels).model_ for title, (one, table, labels) in fits.items()}


def packings(model: Any) -> dict[str, Contestant]:
    """The forest of a model in every form."""
    return {
        name: Contestant(
            model.forest.n_nodes,
            partial(form.save, model),
            partial(form.load, model),
            partial(forest_forms.same, model.forest),
        )
        for name, form in forest_forms.forms().items()
    }


if __name__ == "__main__":
    main()
