"""A history of a fit with all parts, and damages that readers refuse."""

import copy
import math

GOOD = {
    "runs": [
        {
            "kind": "fit",
            "rounds": [1, 2, 5],
            "best": 2,
            "curves": [{"set": "validation", "metric": "rmse", "values": [1.0, None, 2]}],
        }
    ],
    "adaboost": {
        "rounds": [1, 2],
        "training_error": [0.5, 0.25],
        "bound": [0.9, None],
        "edge_bound": None,
        "vote_range": 2.5,
    },
    "out_of_bag": {"trees": [1, 3], "metric": "rmse", "values": [[1.0, 0.5], [2.0, None]]},
}
DAMAGES = [
    ((), [1]),
    (("runs",), {}),
    (("runs", 0), 3),
    (("runs", 0, "kind"), "walk"),
    (("runs", 0, "rounds"), [1, 2, 2]),
    (("runs", 0, "rounds"), [0, 1, 2]),
    (("runs", 0, "rounds"), [1, 2, 2.5]),
    (("runs", 0, "rounds"), [1, 2, 10**12]),
    (("runs", 0, "rounds"), []),
    (("runs", 0, "best"), 3),
    (("runs", 0, "best"), [2]),
    (("runs", 0, "curves"), []),
    (("runs", 0, "curves", 0), None),
    (("runs", 0, "curves", 0, "set"), 7),
    (("runs", 0, "curves", 0, "metric"), None),
    (("runs", 0, "curves", 0, "values"), [1.0, 2.0]),
    (("runs", 0, "curves", 0, "values"), [1.0, 2.0, "3"]),
    (("runs", 0, "curves", 0, "values"), [1.0, 2.0, True]),
    (("runs", 0, "curves", 0, "values"), [1.0, 2.0, math.nan]),
    (("runs", 0, "curves", 0, "values"), [1.0, 2.0, 10**400]),
    (("adaboost",), None),
    (("adaboost", "rounds"), [1]),
    (("adaboost", "bound"), 0.5),
    (("adaboost", "vote_range"), None),
    (("adaboost", "vote_range"), -1.0),
    (("adaboost", "vote_range"), "2"),
    (("out_of_bag",), []),
    (("out_of_bag", "trees"), [3, 1]),
    (("out_of_bag", "metric"), "gini"),
    (("out_of_bag", "metric"), []),
    (("out_of_bag", "values"), []),
    (("out_of_bag", "values"), [[1.0]]),
]


def damaged(path, value):
    """Return the history with another value at a path."""
    if not path:
        return value
    history = copy.deepcopy(GOOD)
    place = history
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return history
