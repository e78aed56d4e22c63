"""How small are model files, and how long does it take to save and to load one?

Boosters of the same data, rounds and depth, and forests; sizes also by the node, because libraries
prune differently. Loading is what a user writes: the file is in the cache of the system, and the
library has loaded a file before.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from support import data, harness
from support.peers import installed

KB = 1e3
MS = 1e-3


@dataclass(frozen=True)
class Contestant:
    """A fitted model: how many nodes it has, how to save and how to load it."""

    nodes: int
    save: Callable[[Path], object]
    load: Callable[[Path], object]


def main() -> None:
    """Fit, weigh and time all of them, print and save the figures."""
    parser = harness.parser(__doc__, "files")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--trees", type=int, default=100, help="of the forests")
    parser.set_defaults(repeats=20)
    args = harness.parse(parser)
    X, y = data.higgs_like(args.rows, args.features)
    figures = {
        "boosters": contest(args, boosters(args, X, y)),
        "forests": contest(args, forests(args, X, y)),
    }
    header = ("form", "nodes", "KB", "bytes a node", "save ms", "load ms")
    for what, title in (
        ("boosters", f"{args.rounds} trees of depth {args.depth}, {args.features} features"),
        ("forests", f"{args.trees} full trees, {args.rows:,} rows"),
    ):
        harness.show(title, header, [row(*item) for item in figures[what].items()])
    sizes = {"rows": args.rows, "rounds": args.rounds, "depth": args.depth, "trees": args.trees}
    harness.save(args, sizes | figures)


def row(name: str, one: dict[str, float]) -> tuple[Any, ...]:
    """A line of the table."""
    by_node = one["bytes"] / one["nodes"]
    return name, one["nodes"], one["bytes"] / KB, by_node, one["save"] / MS, one["load"] / MS


def contest(args: Any, contestants: dict[str, Contestant]) -> dict[str, dict[str, float]]:
    """Size and best times of each; contestants alternate."""
    saves: dict[str, list[float]] = {name: [] for name in contestants}
    loads: dict[str, list[float]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name.replace(" ", ".") for name in contestants}
        for repeat in range(args.repeats + 1):
            for name, one in contestants.items():
                save, load = _seconds(one.save, paths[name]), _seconds(one.load, paths[name])
                if repeat > 0:  # the first one imports what it needs
                    saves[name].append(save)
                    loads[name].append(load)
        return {
            name: {
                "nodes": one.nodes,
                "bytes": paths[name].stat().st_size,
                "save": min(saves[name]),
                "load": min(loads[name]),
            }
            for name, one in contestants.items()
        }


def _seconds(action: Callable[[Path], object], path: Path) -> float:
    start = time.perf_counter()
    action(path)
    return time.perf_counter() - start


def boosters(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """Boosters of all libraries that are here, in all their forms."""
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
    """LightGBM's text."""
    import lightgbm as lgb

    settings = {"objective": "binary", "num_leaves": 2**args.depth, "max_depth": args.depth}
    settings |= {"min_data_in_leaf": 1, "lambda_l2": 1.0, "verbosity": -1}
    booster = lgb.train(settings, lgb.Dataset(X, y), args.rounds)
    nodes = sum(2 * one["num_leaves"] - 1 for one in booster.dump_model()["tree_info"])
    load = lambda path: lgb.Booster(model_file=path)  # noqa: E731
    return {"lightgbm text": Contestant(nodes, booster.save_model, load)}


def xgboost(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """XGBoost's UBJ and JSON."""
    import xgboost as xgb

    settings = {"objective": "binary:logistic", "max_depth": args.depth, "eta": 0.1}
    settings["max_bin"] = 255
    booster = xgb.train(settings, xgb.QuantileDMatrix(X, y, max_bin=255), args.rounds)
    nodes = sum(text.count("\n") for text in booster.get_dump())

    # The ending of the file's name says which form it has.
    one = Contestant(nodes, booster.save_model, lambda path: xgb.Booster(model_file=path))
    return {"xgboost ubj": one, "xgboost json": one}


def catboost(args: Any, X: Any, y: Any) -> dict[str, Contestant]:
    """CatBoost's own form, of trees that grow by level as the others do."""
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
    """Full-grown forests of ours and of scikit-learn."""
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


if __name__ == "__main__":
    main()
