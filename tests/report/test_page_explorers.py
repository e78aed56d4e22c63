"""The page's explorers answer clicks and keys with the numbers of the payload.

Tests that set the state they start from share one page; the others open a new one.
"""

import base64

import numpy as np

from support.report_payloads import PAYLOADS, binary, multiclass, two_models

DASH, MINUS = "\u2013", "\u2212"


def counts_shown(opened):
    cells = opened.page.locator("[data-count]")
    return {
        cell.get_attribute("data-count"): int(cell.inner_text().replace(",", ""))
        for cell in cells.all()
    }


def counts_of(thresholds, k):
    return {name: thresholds[name][k] for name in ("tp", "fp", "fn", "tn")}


def rate(opened, name):
    return opened.text(f"[data-rate={name}]")


def test_threshold_starts_at_the_default(visit):
    opened = visit("binary")
    thresholds = binary()["models"][0]["binary"]["thresholds"]
    found = counts_of(thresholds, thresholds["t"].index(0.5))
    assert counts_shown(opened) == found
    assert rate(opened, "precision") == f"{found['tp'] / (found['tp'] + found['fp']):.3f}"
    assert rate(opened, "recall") == f"{found['tp'] / (found['tp'] + found['fn']):.3f}"
    f1 = 2 * found["tp"] / (2 * found["tp"] + found["fp"] + found["fn"])
    assert rate(opened, "f1") == f"{f1:.3f}"


def test_threshold_moves_by_keys_and_by_its_field(drawn):
    opened = drawn("binary")
    thresholds = binary()["models"][0]["binary"]["thresholds"]
    slider = opened.page.get_by_role("slider", name="Threshold")
    opened.page.get_by_role("spinbutton", name="Threshold").fill("0.5")
    opened.page.keyboard.press("Enter")
    slider.press("ArrowRight")
    assert counts_shown(opened) == counts_of(thresholds, 51)
    assert slider.get_attribute("aria-valuetext") == "threshold 0.51"
    slider.press("PageDown")
    assert counts_shown(opened) == counts_of(thresholds, 41)
    slider.press("End")
    assert counts_shown(opened) == counts_of(thresholds, 100)
    assert rate(opened, "precision") == DASH
    opened.page.get_by_role("spinbutton", name="Threshold").fill("0.3")
    opened.page.keyboard.press("Enter")
    assert counts_shown(opened) == counts_of(thresholds, 30)
    assert opened.messages == []


def test_lowest_cost_is_found(drawn):
    opened = drawn("binary")
    thresholds = binary()["models"][0]["binary"]["thresholds"]
    for miss in (1, 5):
        costs = np.array(thresholds["fp"]) + miss * np.array(thresholds["fn"])
        opened.page.get_by_label("Cost of a missed positive").fill(str(miss))
        opened.page.get_by_role("button", name="Lowest cost").click()
        assert counts_shown(opened) == counts_of(thresholds, int(costs.argmin()))
        assert rate(opened, "cost") == str(costs.min())


def test_chart_of_thresholds_answers_clicks(drawn):
    opened = drawn("binary")
    opened.page.locator("#threshold figure").scroll_into_view_if_needed()
    chart = opened.page.locator("#threshold svg.plot")
    chart.wait_for()
    chart.click(position={"x": chart.bounding_box()["width"] - 18, "y": 100})
    assert float(opened.page.get_by_role("spinbutton", name="Threshold").input_value()) > 0.95


def number_field(opened):
    return opened.page.get_by_role("textbox", name="Row number")


def row_number(opened):
    return int(number_field(opened).input_value())


def test_rows_are_walked_by_buttons_and_keys(drawn):
    opened = drawn("binary")
    rows = binary()["rows"]["index"]
    number_field(opened).fill(str(rows[0]))
    opened.page.keyboard.press("Enter")
    assert row_number(opened) == rows[0]
    opened.page.get_by_role("button", name="Next row").click()
    assert row_number(opened) == rows[1]
    number_field(opened).press("ArrowDown")
    assert row_number(opened) == rows[2]
    number_field(opened).press("ArrowUp")
    opened.page.get_by_role("button", name="Previous row").click()
    assert row_number(opened) == rows[0]


def test_row_shows_prediction_truth_values_and_flip(drawn):
    opened = drawn("binary")
    payload = binary()
    model, k = payload["models"][0], 9
    number_field(opened).fill(str(payload["rows"]["index"][k]))
    opened.page.keyboard.press("Enter")
    tiles = opened.text("#rows dl.answer")
    assert f"Prediction {model['predictions']['label'][k]}" in tiles
    assert f"Truth {payload['rows']['truth'][k]}" in tiles
    flip = opened.text("#rows .flip")
    assert "With income 48.25 instead of 12.5" in flip
    assert model["flips"][k]["label"] in flip
    values = opened.text("#rows .explorer-columns table")
    assert payload["rows"]["columns"]["region"][k] in values
    rects = opened.page.locator("#rows .waterfall rect.step")
    opened.page.locator("#rows figure").scroll_into_view_if_needed()
    rects.first.wait_for()
    assert rects.count() == len(model["shap"]["features"])


def test_absent_row_number_is_answered(drawn):
    opened = drawn("binary")
    number_field(opened).fill("12")
    opened.page.keyboard.press("Enter")
    assert "Row 12 is not in the sample; the nearest is row 17." in opened.text("#rows .finder")
    assert row_number(opened) == 17


def test_search_narrows_the_rows(drawn):
    opened = drawn("binary")
    rows = binary()["rows"]
    ages = [k for k, age in enumerate(rows["columns"]["age"]) if age is not None and age > 40]
    search = opened.page.get_by_role("searchbox", name="Search rows")
    search.fill("age > 40")
    assert f"1 of {len(ages)} matching rows" in opened.text("#rows .finder .note")
    assert row_number(opened) == rows["index"][ages[0]]
    search.fill("no such text anywhere")
    assert "No row matches." in opened.text("#rows .finder .note")
    search.fill("region = south")
    assert "south" in opened.text("#rows .explorer-columns table")
    search.fill("")


def test_rows_are_ordered_by_their_error(visit):
    opened = visit("regression")
    payload = PAYLOADS["regression"]()
    errors = np.abs(payload["models"][0]["predictions"]["error"])
    opened.page.get_by_label("Order").select_option("error")
    assert row_number(opened) == payload["rows"]["index"][int(errors.argmax())]


def test_dot_of_the_summary_opens_its_row(drawn):
    opened = drawn("binary")
    opened.page.locator("#shap").scroll_into_view_if_needed()
    dot = opened.page.locator("#shap .dots circle").nth(17)
    dot.wait_for()
    dot.click()
    number = row_number(opened)
    assert number != binary()["rows"]["index"][0]
    assert opened.page.evaluate("document.activeElement.id") == "rows-title"
    assert opened.page.locator("#shap .chosen circle").count() == 6


def test_dots_are_walked_by_keys(drawn):
    opened = drawn("binary")
    values = binary()["models"][0]["shap"]["values"][0]
    opened.page.locator("#shap").scroll_into_view_if_needed()
    swarm = opened.page.locator("#shap svg.swarm")
    swarm.wait_for()
    swarm.press("Home")
    swarm.press("ArrowRight")
    second = int(np.argsort(values[0])[1])
    assert f"row {binary()['rows']['index'][second]}," in opened.text("#shap [aria-live]")
    swarm.press("ArrowDown")
    swarm.press("Enter")
    assert row_number(opened) == binary()["rows"]["index"][second]


def leaves_of(trees):
    return np.frombuffer(base64.b64decode(trees["leaves"]), "<u2").reshape(-1, trees["shown"])


def test_path_ends_in_the_leaf_of_the_row(visit):
    opened = visit("binary")
    trees = binary()["models"][0]["trees"]
    opened.page.locator("#rows").get_by_role("button", name="Next tree").click()
    leaf = int(leaves_of(trees)[0, 1])
    value = trees["value"][trees["start"][1] + leaf]
    shown = opened.text("#rows ol.path li.leaf").replace(MINUS, "-")
    assert f"leaf value {value:.4g}" in shown
    assert opened.page.locator("#rows ol.path li").count() == 4
    on_path = opened.page.locator("#trees .node.on-path")
    assert on_path.last.get_attribute("data-node") == str(leaf)
    assert on_path.count() == 4


def test_tree_answers_clicks_and_keys(visit):
    opened = visit("binary")
    explorer = opened.page.locator("#trees")
    explorer.get_by_role("slider", name="Tree").press("End")
    assert "Tree 5" in opened.text("#trees [role=status]")
    explorer.get_by_label("Open to depth").select_option("99")
    nodes = explorer.locator("[data-node]")
    assert nodes.count() == 7
    explorer.locator("[data-node='1']").click()
    assert nodes.count() == 5
    assert explorer.locator("[data-node='1']").get_attribute("aria-expanded") == "false"
    opened.page.keyboard.press("Enter")
    assert nodes.count() == 7
    opened.page.keyboard.press("ArrowRight")
    assert "leaf 3" in opened.text("#trees .node-details")
    opened.page.keyboard.press("ArrowDown")
    assert "leaf 4" in opened.text("#trees .node-details")
    opened.page.keyboard.press("Home")
    assert "split 0" in opened.text("#trees .node-details")


def test_output_is_chosen_for_contributions(visit):
    opened = visit("multiclass")
    payload = multiclass()
    model = payload["models"][0]
    chosen = opened.page.get_by_label("Contributions to")
    label = model["predictions"]["label"][0]
    assert chosen.input_value() == str(payload["classes"].index(label))
    chosen.select_option("1")
    shown = opened.text("#rows .explorer-columns table").replace(MINUS, "-")
    assert f"{model['shap']['values'][1][0][0]:.3g}" in shown


def test_model_switch_changes_all_explorers(visit):
    opened = visit("two")
    second = two_models()["models"][1]
    opened.page.locator("#threshold").get_by_role("radio", name="AdaBoost").check()
    thresholds = second["binary"]["thresholds"]
    assert counts_shown(opened) == counts_of(thresholds, 50)
    assert f"Prediction {second['predictions']['label'][0]}" in opened.text("#rows dl.answer")
    checked = opened.page.locator("#trees .choice input:checked")
    assert checked.get_attribute("value") == "1"
    assert opened.messages == []


def test_importances_change_their_measure(drawn):
    opened = drawn("binary")
    opened.page.locator("#importances").get_by_role("radio", name="gain").check()
    opened.page.locator("#importances figure").scroll_into_view_if_needed()
    assert opened.text("#importances figure h3") == "Gain"
    opened.page.locator("#importances svg.plot").wait_for()
