"""Fixtures of the report's tests: a browser, and pages of hand-made payloads."""

import pytest

from arboost.report.report import assemble
from support.browser import Visit, launched
from support.report_payloads import PAYLOADS


# Not of the session: Playwright keeps an event loop running in this thread, and tests of other
# folders start loops of their own.
@pytest.fixture(scope="module")
def browser():
    """Return a headless Chromium."""
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the files of the pages, by the name of their payload."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in PAYLOADS}
    for name, path in paths.items():
        path.write_text(assemble(PAYLOADS[name]()), encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def drawn(browser, pages):
    """Return a function that gives the open page of a payload, all drawn, shared by a file.

    It is for tests that read, and for those that set the state they start from.
    """
    opened = {}

    def get(name):
        if name not in opened:
            opened[name] = Visit(browser, pages[name])
            opened[name].draw_all()
        return opened[name]

    yield get
    for one in opened.values():
        one.close()


@pytest.fixture
def visit(browser, pages):
    """Return a function that opens the page of a payload anew: for tests that change it."""
    opened = []

    def open_page(name, **options):
        opened.append(Visit(browser, pages[name], **options))
        return opened[-1]

    yield open_page
    for one in opened:
        one.close()
