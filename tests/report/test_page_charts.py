"""The page in a browser: quiet, without requests, every chart drawn, hostile text as text."""

import numpy as np
import pytest

from arboost.report.report import assemble
from support.browser import Visit
from support.report_parts import HOSTILE_LEVEL, HOSTILE_NAME, LONG_NAME
from support.report_payloads import PAYLOADS, bare, with_holes

SECTIONS = {
    "binary": {"scores", "data", "learning", "ranking", "calibration", "threshold", "confusion"},
    "multiclass": {"scores", "ranking", "calibration", "confusion", "classes", "forest"},
    "regression": {"scores", "learning", "regression", "coverage", "segments"},
    "two": {"comparison", "scores", "ranking", "calibration", "theory"},
}
SHARED = {"importances", "shap", "dependence", "rows", "trees", "about", "repeat", "segments"}
MARKS = "circle, path, rect"


@pytest.fixture(params=PAYLOADS)
def name(request):
    return request.param


def test_page_is_quiet_and_asks_for_nothing(drawn, name):
    opened = drawn(name)
    opened.page.wait_for_timeout(100)
    assert opened.messages == []
    assert opened.requests == [opened.address]


def test_sections_are_those_of_the_payload(drawn, name):
    ids = drawn(name).page.eval_on_selector_all("main section", "all => all.map(one => one.id)")
    assert SECTIONS[name] | SHARED <= set(ids)
    absent = {"binary": "regression", "multiclass": "threshold", "regression": "confusion"}
    assert absent.get(name, "forest") not in ids
    links = drawn(name).page.eval_on_selector_all("nav a", "all => all.map(one => one.hash)")
    assert links == [f"#{one}" for one in ids]


def test_every_chart_has_marks_and_a_text(drawn, name):
    opened = drawn(name)
    figures = opened.page.locator("figure.chart")
    facts = figures.evaluate_all(
        f"""all => all.map(one => ({{
            title: one.querySelector('h3')?.textContent,
            marks: one.querySelectorAll('.plot-box :is({MARKS})').length,
            text: one.querySelector('.plot-box[role=img]')?.getAttribute('aria-label')
                ?? one.querySelector('svg')?.getAttribute('aria-label'),
        }}))"""
    )
    assert len(facts) >= 9
    assert all(fact["marks"] >= 1 and fact["title"] and fact["text"] for fact in facts), facts
    texts = " ".join(fact["text"] for fact in facts)
    assert not any(word in texts for word in ("undefined", "NaN", "null", "[object")), texts


def test_page_shows_no_broken_values(drawn, name):
    text = drawn(name).page.inner_text("#page")
    assert not any(word in text for word in ("undefined", "NaN", "[object", "null"))


def test_charts_wait_until_they_are_in_view(visit):
    opened = visit("binary")
    below = opened.page.locator("#importances svg.plot")
    assert below.count() == 0
    opened.page.locator("#importances").scroll_into_view_if_needed()
    below.first.wait_for()


def test_beeswarm_has_a_dot_for_each_row_and_feature(drawn):
    opened = drawn("binary")
    shap = PAYLOADS["binary"]()["models"][0]["shap"]
    dots = sum(value is not None for line in shap["values"][0] for value in line)
    assert opened.page.locator("#shap .dots circle").count() == dots


def test_roc_text_gives_the_area(drawn):
    opened = drawn("binary")
    label = opened.page.locator("#ranking .plot-box").first.get_attribute("aria-label")
    assert label == "ROC curve: area 0.9312"


def test_chart_shows_as_table(drawn):
    opened = drawn("binary")
    box = opened.page.locator("#calibration details.as-table").first
    box.locator("summary").click()
    box.locator("tbody tr").first.wait_for()
    assert box.locator("tbody tr").count() == 10
    assert box.locator("thead th[scope=col]").count() == 5


def test_all_tables_behind_charts_open(visit, name):
    opened = visit(name)
    opened.page.evaluate(
        "document.querySelectorAll('details.as-table').forEach(one => (one.open = true))"
    )
    opened.page.wait_for_function(
        "[...document.querySelectorAll('details.as-table')].every(one => one.querySelector('td'))"
    )
    labels = opened.page.eval_on_selector_all(
        "details.as-table [role=region]", "all => all.map(one => one.getAttribute('aria-label'))"
    )
    titles = opened.page.locator("figure.chart h3").all_inner_texts()
    assert all(labels)
    assert all(titles)
    assert not any("[object" in label for label in labels)
    text = opened.page.inner_text("#page")
    assert not any(word in text for word in ("undefined", "NaN", "[object"))
    assert opened.messages == []


def test_hostile_text_stays_text(drawn):
    opened = drawn("multiclass")
    text = opened.page.inner_text("#data")
    assert HOSTILE_NAME in text
    assert HOSTILE_LEVEL in opened.page.inner_text("#classes")
    assert opened.page.locator("#page img, #page script, #page b").count() == 0
    assert opened.page.title() == PAYLOADS["multiclass"]()["title"]
    assert opened.messages == []


def test_long_name_is_shortened_with_its_whole_in_the_title(drawn):
    opened = drawn("binary")
    names = opened.page.locator("#data tbody th .name").last
    assert names.get_attribute("title") == LONG_NAME
    assert len(names.inner_text()) < 40


def test_tables_sort_by_click_and_key(drawn):
    opened = drawn("binary")
    table = opened.page.locator("#segments table")
    first = table.locator("tbody tr").first.locator("td").nth(1)
    assert first.inner_text() == "90"
    button = table.locator("thead button", has_text="Rows")
    button.click()
    assert first.inner_text() == "97"
    assert table.locator("thead th[aria-sort=descending]").inner_text().strip() == "Rows"
    button.press("Enter")
    assert first.inner_text() == "90"


def test_confusion_matrix_has_the_counts(drawn):
    opened = drawn("multiclass")
    cells = opened.page.locator("#confusion tbody tr").nth(1).locator("td")
    assert cells.all_inner_texts() == ["9", "187", "12", "6", "214"]
    opened.page.get_by_role("radio", name="share of the true class").check()
    assert cells.first.inner_text() == "4.2%"


@pytest.mark.parametrize("change", [bare, with_holes])
def test_absent_parts_leave_a_quiet_page(browser, tmp_path, name, change):
    path = tmp_path / "page.html"
    path.write_text(assemble(change(PAYLOADS[name]())), encoding="utf-8")
    opened = Visit(browser, path)
    opened.draw_all()
    assert opened.messages == []
    text = opened.page.inner_text("#page")
    assert not any(word in text for word in ("undefined", "NaN", "[object", "could not be drawn"))
    opened.close()


def test_many_classes_end_with_the_others(browser, tmp_path):
    payload = PAYLOADS["multiclass"]()
    payload["classes"] = [f"class {k}" for k in range(40)]
    model = payload["models"][0]
    names = [*payload["classes"][:29], "other"]
    model["confusion"] = {"matrix": np.arange(900).reshape(30, 30).tolist(), "names": names}
    curve = model["multiclass"]["roc"][0]
    model["multiclass"]["roc"] = [curve | {"class": f"class {k}"} for k in range(10)]
    path = tmp_path / "page.html"
    path.write_text(assemble(payload), encoding="utf-8")
    opened = Visit(browser, path)
    opened.draw_all()
    heads = opened.page.locator("#confusion tbody th").all_inner_texts()
    assert heads == [*(f"class {k}" for k in range(29)), "other"]
    assert opened.page.locator("#ranking .legend .dash").count() == 2
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 1280
    assert opened.messages == []
    opened.close()
