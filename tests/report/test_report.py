"""The report itself: same bytes, files, notebooks, hostile names, the hash of the model."""

import hashlib
import html
import json
import re

import numpy as np
import pytest

import arboost
from support.reported import fitted, halves, report, same_parts, table

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u202eright to left",
    "\N{GRINNING FACE} emoji",
    "a" * 3000,
    'quote " and \\ and \u2028',
    "",
)


def again(**options):
    frame, targets = table()
    test = halves()[1]
    model = fitted("GradientBoosting", "binary").model_
    return model.report(frame[test], targets["binary"][test], **options)


def test_equal_arguments_give_equal_payloads():
    one, two = again(n_jobs=1), again(n_jobs=2)
    assert same_parts(one.payload) == same_parts(two.payload)


def test_threads_of_an_estimator_can_be_given():
    frame, targets = table()
    test = halves()[1]
    model = fitted("RandomForest", "binary")
    one = model.report(frame[test], targets["binary"][test], n_jobs=1)
    two = model.report(frame[test], targets["binary"][test])
    assert model.n_jobs is None
    assert same_parts(one.payload) == same_parts(two.payload)


def test_only_clock_parts_differ():
    payload = again().payload
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", payload["created"])
    assert [label for label, _ in payload["models"][0]["timings"]][-1] == "this report"


def test_page_is_saved(tmp_path):
    path = tmp_path / "report.html"
    found = again(path=path, title="A & B <i>")
    text = path.read_text(encoding="utf-8")
    assert text == found.to_html()
    assert "<title>A &amp; B &lt;i&gt;</title>" in text
    assert not list(tmp_path.glob("*.tmp"))
    assert "http-equiv" in text


def test_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    broken = arboost.Report(again().payload | {"rows": {"bad": {1, 2}}})
    with pytest.raises(TypeError):
        broken.save(path)
    assert path.read_text() == "old"


def test_notebooks_show_the_page_and_its_pieces():
    found = again()
    frame = found._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    inner = html.unescape(re.search('srcdoc="(.*?)"', frame, re.S)[1])
    assert inner == found.to_html()
    piece = found.section("calibration", "confusion")
    assert "<iframe" in piece._repr_html_()
    assert len(piece.to_html()) < len(found.to_html())
    assert repr(piece) == "ReportSection(calibration, confusion)"
    with pytest.raises(ValueError, match="section got 'nothing', but a report has the sections"):
        found.section("nothing")
    with pytest.raises(ValueError, match="section got no name"):
        found.section()


def test_names():
    assert repr(report()) == "Report(GradientBoostingClassifier, 120 rows)"
    assert repr(again()) == "Report(gradient boosting classifier, 120 rows)"
    pair = again(compare=fitted("RandomForest", "binary"))
    assert repr(pair) == (
        "Report(gradient boosting classifier and RandomForestClassifier, 120 rows)"
    )
    twins = again(compare=fitted("GradientBoosting", "binary").model_)
    assert repr(twins).startswith("Report(gradient boosting classifier A and gradient boosting")


def test_hash_is_that_of_the_file(tmp_path):
    model = fitted("GradientBoosting", "binary")
    model.save(tmp_path / "model.arb")
    digest = hashlib.sha256((tmp_path / "model.arb").read_bytes()).hexdigest()
    assert report().payload["models"][0]["hash"] == digest


def test_facts_and_parameters():
    found = report().payload["models"][0]
    facts = dict(found["facts"])
    assert facts["trained on"] == "120 rows"
    assert facts["report by"] == f"arboost {arboost.__version__}"
    params = {name: (value, default) for name, value, default in found["params"]}
    assert params["n_estimators"] == ("8", '"auto"')
    loaded = {
        name: (value, default) for name, value, default in again().payload["models"][0]["params"]
    }
    assert loaded["n_estimators"][0] == "8"
    code = dict(found["repeat"])["Python"]
    assert code.endswith('model.report(X, y, X_train=X_train, y_train=y_train).save("report.html")')


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_data(name):
    columns = {name or "empty": np.arange(60) % 7, "level": np.array([name, "b"] * 30, object)}
    y = np.array([f"{name}1", "no"] * 30)
    model = arboost.GradientBoostingClassifier(n_estimators=3).fit(columns, y)
    found = model.report(columns, y, title=name)
    page = found.to_html()
    assert page.count("<script") == again().to_html().count("<script")
    data = re.search(r'id="report-data">(.*?)</script>', page, re.S)[1]
    assert not re.search("[<>&\u2028\u2029]", data)
    carried = json.loads(data)
    assert carried["title"] == name
    assert carried["classes"] == sorted([f"{name}1", "no"])
    assert carried["data"]["columns"][0]["name"] == (name or "empty")
    levels = carried["data"]["columns"][1]["levels"]["names"]
    assert any(one == name or (len(one) == 200 and one[:199] == name[:199]) for one in levels)


def test_report_of_a_loaded_model_needs_no_scikit_learn(tmp_path):
    """A report runs where only NumPy is imported."""
    import subprocess
    import sys

    X = np.arange(80.0).reshape(40, 2)
    arboost.GradientBoostingRegressor(n_estimators=3).fit(X, X[:, 0]).save(tmp_path / "m.arb")
    code = (
        "import sys, arboost, numpy as np\n"
        "X = np.arange(80.0).reshape(40, 2)\n"
        f"arboost.load({str(tmp_path / 'm.arb')!r}).report(X, X[:, 0]).to_html()\n"
        "print(sorted(m for m in ('sklearn', 'pandas', 'scipy') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_long_texts_are_cut():
    texts = np.array(["long " * 1000 + str(i % 40) for i in range(400)], object)
    y = np.arange(400) % 2
    model = arboost.GradientBoostingClassifier(n_estimators=3).fit({"text": texts}, y)
    found = model.report({"text": texts}, y)
    assert len(json.dumps(found.payload)) < 300_000
    assert max(map(len, found.payload["rows"]["columns"]["text"])) <= 200
    assert found.payload["data"]["columns"][0]["n_distinct"] == 40
    assert sum(found.payload["data"]["columns"][0]["levels"]["test"]) == 120
