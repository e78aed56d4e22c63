"""Headless Chromium for tests of pages: finds it, opens a page and records all it does."""

import shutil
from contextlib import contextmanager

import pytest

# A container has no sandbox for Chromium, and a test no use for its background requests.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium_path():
    """Return the path of Chromium on this machine, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def launched():
    """Yield a browser; skip the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = chromium_path()
    if path is None:
        pytest.skip(f"no Chromium: install one of {', '.join(NAMES)}")
    with playwright.sync_playwright() as session:
        browser = session.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened from a file, and all it said and asked for.

    Attributes
    ----------
    page
        Playwright's page.
    messages
        Console messages, uncaught errors and dialogs, as text.
    requests
        Addresses that the page asked for, its own file among them.
    """

    def __init__(self, browser, path, **options):
        self.messages, self.requests = [], []
        self.address = path.absolute().as_uri()
        self._context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}} | options
        )
        self.page = self._context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.address)

    def _dismiss(self, dialog):
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def draw_all(self):
        """Draw the charts that are out of view, as print does, and leave print again."""
        for event in ("beforeprint", "afterprint"):
            self.page.evaluate(f"window.dispatchEvent(new Event('{event}'))")

    def text(self, selector):
        """Return the text of the first element of a selector, as a reader sees it."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def close(self):
        """Close the page and its context."""
        self._context.close()
