"""One contestant in a fresh process: fit, and print the figures as JSON.

Called by harness.run with one JSON argument. The data are in memory, the library is imported and
its threads are started (by a tiny fit) before the clock starts.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from support.data import load
from support.peers import PEERS
from support.shape import Peer, Shape, Work

WARM_UP_ROWS = 200


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = json.loads(sys.argv[1])
    folder = Path(job["folder"])
    peer = PEERS[job["peer"]]
    work = Work(Shape(**job["shape"]), job["rounds"], job["threads"], job["variant"])
    X, y = load(folder, "X"), load(folder, "y")
    _fit(peer, X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], Work(work.shape, 1, work.threads, work.variant))

    gc.collect()
    peak = PeakMemory()
    figures, model = _fit(peer, X, y, work)
    figures |= {"peak_mb": peak.beyond_start_mb(), "start_mb": peak.start}
    for _ in range(job["fits"] - 1):
        again, model = _fit(peer, X, y, work)
        if again["seconds"] < figures["seconds"]:
            figures |= again
    if job["quality"]:
        proba = peer.predict(model, load(folder, "X_test"))
        figures |= quality(load(folder, "y_test"), np.asarray(proba, dtype=np.float64))
    print(json.dumps(figures))


def _fit(peer: Peer, X: Any, y: np.ndarray, work: Work) -> tuple[dict[str, Any], Any]:
    start = time.perf_counter()
    data = peer.bin(X, y, work)
    binned = time.perf_counter()
    model = peer.train(data, work)
    end = time.perf_counter()
    return {"seconds": end - start, "bin_seconds": binned - start}, model


class PeakMemory:
    """Peak resident memory since construction, minus the resident memory at construction.

    Exact on Linux, where writing 5 to clear_refs resets the peak. Elsewhere: the growth of the
    process's lifetime peak.
    """

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.exact = True
        except OSError:
            self.exact = False
        self.start = self._read("VmRSS")

    def _read(self, field: str) -> float:
        if self.exact:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith(field):
                    return int(line.split()[1]) / 1024
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)

    def beyond_start_mb(self) -> float:
        """Peak minus start, in MiB."""
        return self._read("VmHWM") - self.start


def quality(y: np.ndarray, proba: np.ndarray) -> dict[str, float]:
    """Log loss and area under the ROC curve (ties count half)."""
    clipped = np.clip(proba, 1e-15, 1 - 1e-15)
    log_loss = -np.mean(np.where(y == 1, np.log(clipped), np.log1p(-clipped)))
    _, rank, count = np.unique(proba, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(count) - (count - 1) / 2
    positives = np.count_nonzero(y == 1)
    rank_sum = mean_rank[rank[y == 1]].sum() - positives * (positives + 1) / 2
    return {
        "log_loss": float(log_loss),
        "auc": float(rank_sum / (positives * (len(y) - positives))),
    }


if __name__ == "__main__":
    main()
