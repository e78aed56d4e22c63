"""Plots are drawn without a window, and every test closes its figures."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")
