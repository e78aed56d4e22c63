"""A network of this machine's own: a namespace for each worker, and one for scheduler and client.

    worker's namespace  eth0 ═══ w0 ┐
    worker's namespace  eth0 ═══ w1 ┼ bridge 10.77.0.1   namespace of scheduler and client
    ...                             ┘

The namespace of the machine has no part in it, so no packet leaves the others. Both ends of each
pair may have a limit. Needs root on Linux, and iproute2.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

SUBNET = "10.77.0"
HUB_ADDRESS = f"{SUBNET}.1"
PREFIX = "arboost-bench"
# tbf is what most kernels have; netem also limits rates, but is a module of its own.
LIMIT = ("tbf", "rate", "{rate}", "burst", "256kbit", "latency", "50ms")


@dataclass(frozen=True)
class Network:
    """Names of the namespaces."""

    hub: str
    workers: tuple[str, ...]

    @property
    def prefix(self) -> tuple[str, ...]:
        """Command that runs another one where scheduler and client are."""
        return ("ip", "netns", "exec", self.hub)


def why_not() -> str | None:
    """Return the reason for which this process may not make a network; None if it may."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "ip and tc are not installed (apt-get install iproute2)"
    name = f"{PREFIX}-{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "exec", name, "ip", "link", "add", "try", "type", "bridge")
        _run(*("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "try", "root"), *_limit())
    except subprocess.CalledProcessError as error:
        return f"no network namespaces with limits here: {error.stderr.strip()}"
    finally:
        _remove(name)
    return None


@contextmanager
def network(workers: int, rate: str | None) -> Iterator[Network]:
    """Give a network with a limit such as "1gbit" at each worker; remove it and its processes."""
    _remove_left_ones()
    own = f"{PREFIX}-{os.getpid()}"
    made = Network(f"{own}-hub", tuple(f"{own}-{i}" for i in range(workers)))
    before = signal.signal(signal.SIGTERM, _exit)  # so that it is removed then, too
    try:
        _make(made, rate)
        yield made
    finally:
        for name in (*made.workers, made.hub):
            _remove(name)
        signal.signal(signal.SIGTERM, before)


def _make(made: Network, rate: str | None) -> None:
    _run("ip", "netns", "add", made.hub)
    _run("ip", "-n", made.hub, "link", "set", "lo", "up")
    _run("ip", "-n", made.hub, "link", "add", "hub", "type", "bridge")
    _run("ip", "-n", made.hub, "addr", "add", f"{HUB_ADDRESS}/24", "dev", "hub")
    _run("ip", "-n", made.hub, "link", "set", "hub", "up")
    for i, name in enumerate(made.workers):
        _run("ip", "netns", "add", name)
        ends = ("link", "add", f"w{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "-n", made.hub, *ends)
        _run("ip", "-n", made.hub, "link", "set", f"w{i}", "master", "hub", "up")
        _run("ip", "-n", name, "addr", "add", f"{address(i)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run("ip", "-n", name, "link", "set", device, "up")
        if rate is not None:
            for place, device in ((made.hub, f"w{i}"), (name, "eth0")):
                _run("tc", "-n", place, "qdisc", "add", "dev", device, "root", *_limit(rate))


def address(i: int) -> str:
    """Return the address of worker i."""
    return f"{SUBNET}.{i + 2}"


def _limit(rate: str = "1gbit") -> list[str]:
    return [word.format(rate=rate) for word in LIMIT]


@contextmanager
def workers_in(namespaces: Sequence[str], scheduler: str) -> Iterator[None]:
    """Run a Dask worker of one thread in each namespace."""
    running: list[subprocess.Popen[Any]] = []
    with ExitStack() as stack:
        stack.callback(_end, running)
        for i, name in enumerate(namespaces):
            scratch = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            command = ["ip", "netns", "exec", name, sys.executable, "-P"]
            command += ["-m", "distributed.cli.dask_worker", scheduler, "--host", address(i)]
            command += ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
            command += ["--name", str(i), "--local-directory", scratch]
            running.append(
                subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_one_thread()
                )
            )
        yield


def _one_thread() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1"}


def _end(running: list[subprocess.Popen[Any]]) -> None:
    for one in running:
        one.terminate()
    for one in running:
        try:
            one.wait(5)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


def _exit(number: int, _: Any) -> None:
    raise SystemExit(128 + number)


def _remove_left_ones() -> None:
    """Remove namespaces of runs that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        name = line.split()[0] if line.strip() else ""
        owner = name.removeprefix(f"{PREFIX}-").split("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not _is_alive(int(owner)):
            _remove(name)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(name: str) -> None:
    """End the processes of a namespace and remove it; its devices go with it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        found = _pids(name)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + 5
        while found and _pids(name) and time.monotonic() < deadline:
            time.sleep(0.05)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _pids(name: str) -> list[int]:
    done = subprocess.run(
        ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
    )
    return [int(word) for word in done.stdout.split()]


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)
