"""Side effects of the progress bar in fresh processes: threads, start methods, imports."""

import subprocess
import sys
import textwrap


def test_visible_bar_leaves_no_thread_and_no_start_method():
    """tqdm's lock between processes would set the start method of multiprocessing."""
    program = """
        import io, multiprocessing, sys, threading, time
        from arboost.progress import Bar

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        sys.stderr = Terminal()
        with Bar(2, "fitting") as bar:
            bar.show(1)
            assert "tqdm" not in sys.modules
            time.sleep(1.01)
            bar.show(2)
        assert "2/2" in sys.stderr.getvalue()
        print(threading.active_count(), multiprocessing.get_start_method(allow_none=True))
    """
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert printed.stdout.split() == ["1", "None"]


def test_silent_fit_loads_no_tqdm():
    program = """
        import sys
        import arboost
        arboost.GradientBoostingRegressor(n_estimators=2, verbose=0).fit([[0.0], [1.0]], [0, 1])
        print("tqdm" in sys.modules)
    """
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "False"
