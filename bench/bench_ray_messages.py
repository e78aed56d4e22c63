"""How fast are messages between two actors of Ray?

The program and the sizes are those of `bench_messages.py`, for two actors of this machine.
"""

from __future__ import annotations

import ray

from arboost.distributed.data import PartitionedTable
from arboost.distributed.ray_driver import FitResources, run_program
from bench_messages import Silent, messages, report
from support import harness


def main() -> None:
    """Measure, print and save the figures."""
    parser = harness.parser(__doc__, "ray_messages")
    args = harness.parse(parser)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    parts = (ray.put(0), ray.put(1))
    tables = {"train": PartitionedTable(parts, (1, 1))}
    runs = [run_program(messages, tables, Silent(), FitResources(2)) for _ in range(args.repeats)]
    ray.shutdown()
    report(args, runs)


if __name__ == "__main__":
    main()
