"""Dark mode, print, phones, keyboard and screen readers."""

from itertools import pairwise

import pytest

from arboost.report.report import assemble, frame
from support.browser import Visit
from support.report_payloads import PAYLOADS, binary

CONTRAST = """() => {
  const style = getComputedStyle(document.documentElement);
  const channel = (value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const light = (name) => {
    const text = style.getPropertyValue(name).trim();
    const [r, g, b] = [1, 3, 5].map((at) => channel(parseInt(text.slice(at, at + 2), 16)));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const texts = [
    ["--ink", "--paper"], ["--ink", "--card"], ["--muted", "--paper"], ["--muted", "--card"],
    ["--accent", "--paper"], ["--accent", "--card"], ["--accent-ink", "--accent"],
    ["--accent", "--accent-soft"], ["--warn", "--warn-soft"], ["--bad", "--bad-soft"],
    ["--good", "--card"], ["--bad", "--card"], ["--up", "--card"], ["--down", "--card"],
    ["--ink", "--accent-soft"], ["--ink", "--warn-soft"],
  ].map(([a, b]) => [a, b, ratio(a, b), 4.5]);
  const series = [1, 2, 3, 4, 5, 6, 7, 8].map((k) => `--c${k}`);
  const marks = series.map((name) => [name, "--card", ratio(name, "--card"), 3]);
  return [...texts, ...marks].filter(([, , found, least]) => found < least);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_contrast(visit, scheme):
    opened = visit("binary", color_scheme=scheme)
    assert opened.page.evaluate("document.documentElement.dataset.theme") == scheme
    assert opened.page.evaluate(CONTRAST) == []


def background(opened):
    return opened.page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_theme_changes_charts_without_drawing(visit):
    opened = visit("binary")
    line = opened.page.locator("#learning svg [aria-label=line] path").first
    opened.page.locator("#learning").scroll_into_view_if_needed()
    line.wait_for()
    handle = line.element_handle()
    before = handle.evaluate("one => getComputedStyle(one).stroke"), background(opened)
    opened.page.get_by_role("button", name="Dark mode").click()
    after = handle.evaluate("one => getComputedStyle(one).stroke"), background(opened)
    assert handle.evaluate("one => one.isConnected")
    assert before[0] != after[0]
    assert before[1] != after[1]
    opened.page.reload()
    assert background(opened) == after[1]


@pytest.mark.parametrize("name", PAYLOADS)
def test_phone_has_no_horizontal_overflow(visit, name):
    opened = visit(name, viewport={"width": 360, "height": 740})
    opened.draw_all()
    opened.page.wait_for_timeout(60)
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 360
    assert opened.messages == []


def test_menu_of_a_phone_opens_and_closes(visit):
    opened = visit("binary", viewport={"width": 360, "height": 740})
    link = opened.page.locator("nav a", has_text="Importances")
    assert not link.is_visible()
    opened.page.locator("nav summary").click()
    link.click()
    assert not link.is_visible()
    assert opened.page.evaluate("location.hash") == "#importances"


def test_print_draws_everything_in_light_colours(visit):
    opened = visit("regression", color_scheme="dark")
    opened.page.emulate_media(media="print")
    opened.page.wait_for_timeout(60)
    empty = opened.page.locator("figure.chart").evaluate_all(
        "all => all.filter(one => !one.querySelector('.plot-box svg')).length"
    )
    assert empty == 0
    assert background(opened) == "rgb(255, 255, 255)"
    assert not opened.page.locator("nav").is_visible()
    assert opened.page.pdf().startswith(b"%PDF")


CHART_WIDTHS = """
all => all.map(one => Number(one.querySelector('.plot-box svg').getAttribute('width')))
"""


def test_print_draws_charts_for_paper_and_the_screen_again(visit):
    """On A4 less margins, 186 mm are 703 pixels: text in a chart keeps the size that it has."""
    opened = visit("binary")
    opened.draw_all()
    charts = opened.page.locator("figure.chart.wide:not(#trees figure)")
    on_screen = charts.evaluate_all(CHART_WIDTHS)
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    on_paper = charts.evaluate_all(CHART_WIDTHS)
    assert min(on_screen) > 703 > max(on_paper) >= min(on_paper) > 600
    styles = "[...document.styleSheets].flatMap(one => [...one.cssRules]).filter(one => one.media)"
    media = opened.page.evaluate(f"{styles}.map(one => one.media.mediaText)")
    assert "print" in media
    assert "all" not in media
    opened.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert charts.evaluate_all(CHART_WIDTHS) == on_screen


def test_print_has_no_controls_and_no_hints_at_them(drawn):
    opened = drawn("binary")
    opened.page.emulate_media(media="print")
    shown = "all => all.filter(one => one.checkVisibility()).length"
    assert opened.page.locator("button, input, summary, nav").evaluate_all(shown) == 0
    text = opened.page.inner_text("main")
    assert [word for word in ("Click", "Move it", "Choose a dot") if word in text] == []
    opened.page.emulate_media(media="screen")


def test_axes_have_room_for_large_numbers(browser, tmp_path):
    payload = binary()
    series = payload["models"][0]["learning"]["series"]
    for one in series:
        one["y"] = [None if value is None else value * 1e10 for value in one["y"]]
    path = tmp_path / "page.html"
    path.write_text(assemble(payload), encoding="utf-8")
    opened = Visit(browser, path)
    opened.draw_all()
    chart = opened.page.locator("#learning svg.plot").first
    left = chart.evaluate("one => one.getBoundingClientRect().left")
    texts = "all => all.map(one => one.getBoundingClientRect().left)"
    assert min(chart.locator("text").evaluate_all(texts)) >= left
    opened.close()


@pytest.mark.parametrize("name", ["binary", "two"])
def test_headings_do_not_skip_a_level(drawn, name):
    levels = drawn(name).page.eval_on_selector_all(
        "h1, h2, h3, h4", "all => all.map(one => Number(one.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    steps = [b - a for a, b in pairwise(levels)]
    assert max(steps) == 1


def test_page_has_landmarks_and_names(drawn):
    page = drawn("binary").page
    assert page.locator("main").count() == page.locator("nav").count() == 1
    assert page.locator("header").count() == page.locator("footer").count() == 1
    unnamed = page.eval_on_selector_all(
        "button, input, select, [role=img], table",
        """all => all.filter(one => !(one.getAttribute('aria-label') || one.textContent.trim()
             || (one.labels && one.labels.length))).map(one => one.outerHTML)""",
    )
    assert unnamed == []
    heads = page.eval_on_selector_all("th", "all => all.filter(one => !one.scope).length")
    assert heads == 0
    twins = page.evaluate(
        """() => { const ids = [...document.querySelectorAll('[id]')].map(one => one.id);
             return ids.filter((id, k) => ids.indexOf(id) !== k); }"""
    )
    assert twins == []


def test_keyboard_starts_with_the_skip_link(visit):
    opened = visit("binary")
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.className") == "skip"
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("document.activeElement.id") == "content"
    opened.page.keyboard.press("Tab")
    style = opened.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def test_chosen_sections_stand_alone_and_size_their_frame(browser, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(frame(assemble(binary(), only=["calibration"]), height=40), encoding="utf-8")
    opened = Visit(browser, path)
    inside = opened.page.frame_locator("iframe")
    inside.locator("#calibration svg.plot").first.wait_for()
    assert inside.locator("section").count() == 1
    assert inside.locator("header, nav, footer").count() == 0
    opened.page.wait_for_function("document.querySelector('iframe').clientHeight > 200")
    assert opened.messages == []
    opened.close()


def test_section_that_a_model_lacks_is_said(browser, tmp_path):
    path = tmp_path / "none.html"
    path.write_text(assemble(binary(), only=["coverage"]), encoding="utf-8")
    opened = Visit(browser, path)
    assert opened.text("main") == "This model has no such section."
    opened.close()


def test_reduced_motion_is_kept(drawn):
    page = drawn("binary").page
    for motion, behaviour in (("reduce", "auto"), ("no-preference", "smooth")):
        page.emulate_media(reduced_motion=motion)
        style = "getComputedStyle(document.documentElement).scrollBehavior"
        assert page.evaluate(style) == behaviour
