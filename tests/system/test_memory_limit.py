"""A memory limit holds for the whole fit, or is refused with the limit that holds.

Each fit runs in a process of its own, whose peak of resident memory is compared with that before
the fit.
"""

import re
import string
import sys

import numpy as np
import pytest

from arboost.data.memory import limit_bytes
from support.processes import ForkServer

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

NOISE = 15_000_000  # of allocators and threads

FIT = """
import sys, warnings
import numpy as np
import arboost
warnings.simplefilter("ignore")

def resident(name):
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith(name))
    return int(line.split()[1]) * 1024

small, large, limit, kind = sys.argv[1:]
model = getattr(arboost, kind)(n_estimators=2, max_depth=4, n_jobs=2)
model.fit(small, "y")  # imports all that a fit needs
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # resets the peak
before = resident("VmRSS")
try:
    model.fit(large, "y", memory_limit=limit)
    print("done")
except ValueError as error:
    print(error)
print(resident("VmHWM") - before)
"""


def numbers(n_rows, n_columns, n_classes=0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_columns, n_rows))
    y = X[0] + rng.normal(size=n_rows)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return {f"x{i}": column for i, column in enumerate(X)} | {"y": y}


def keys():
    """Three categories of 30,000 levels, and short ones."""
    rng = np.random.default_rng(0)
    table = numbers(150_000, 3, 2)
    for i in range(3):
        table[f"key{i}"] = [
            f"level {one:05d} of the column" for one in rng.integers(30_000, size=150_000)
        ]
    return table | {"short": rng.choice(["one", "two"], 150_000)}


def long_texts():
    rng = np.random.default_rng(0)
    letters = np.array(list(string.ascii_letters))
    texts = ["".join(one) * 60 for one in rng.choice(letters, (40_000, 50))]
    return numbers(40_000, 1) | {"text": texts}


CASES = {
    "keys": (keys, 30_000, "GradientBoostingClassifier", "90MB"),
    "long texts": (long_texts, 1000, "GradientBoostingRegressor", "50MB"),
    "wide": (lambda: numbers(5000, 600), 5000, "GradientBoostingRegressor", "60MB"),
    "one row group": (lambda: numbers(400_000, 25), 10**9, "GradientBoostingRegressor", "80MB"),
    # Batches of 128 MB, of which the limit would hold two thirds next to the rest.
    "batches that fit in part": (
        lambda: numbers(1_000_000, 15),
        10**9,
        "GradientBoostingRegressor",
        "250MB",
    ),
    "AdaBoost": (lambda: numbers(300_000, 5, 10), 30_000, "AdaBoostClassifier", "90MB"),
    "forest": (lambda: numbers(300_000, 5, 10), 30_000, "RandomForestClassifier", "110MB"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ForkServer(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.mark.parametrize("case", CASES)
def test_the_limit_holds_or_is_refused(case, server, tmp_path):
    make, group_rows, kind, limit = CASES[case]
    table = pa.table(make())
    parquet.write_table(table, tmp_path / "large.parquet", row_group_size=group_rows)
    parquet.write_table(table.slice(0, 500), tmp_path / "small.parquet")
    del table
    paths = str(tmp_path / "small.parquet"), str(tmp_path / "large.parquet")
    for _ in range(4):  # a refusal of levels is of those so far
        done = server.run(FIT, *paths, limit, kind)
        assert done.returncode == 0, done.stderr
        message, grown = done.stdout.splitlines()
        assert int(grown) <= limit_bytes(limit) + NOISE
        if message == "done":
            return
        found = re.search(r"is too low for .* needs?(?: at least)? ([0-9.]+[MG]B)", message)
        further = re.search(r"([0-9.]+[MG]B) if new levels go on as before", message)
        assert found is not None, message
        assert limit_bytes(found[1]) > limit_bytes(limit)
        limit = (further or found)[1]
    pytest.fail(f"{limit} is not enough")
