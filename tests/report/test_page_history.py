"""Pages of loaded models: curves of the fit, AdaBoost's bounds and out-of-bag curves are drawn."""

import pytest

import arboost
from support.browser import Visit
from support.reported import halves, table

MODELS = {
    "learning": arboost.GradientBoostingClassifier(n_estimators=40, n_iter_no_change=5, verbose=0),
    "theory": arboost.AdaBoostClassifier(n_estimators=120, verbose=0),
    "forest": arboost.RandomForestClassifier(60, oob_score=True, verbose=0),
}
TEXTS = {
    "learning": "Recorded during the fit",
    "theory": "Freund and Schapire",
    "forest": "Out-of-bag error rate by number of trees",
}


@pytest.mark.parametrize("name", MODELS)
def test_sections_of_loaded_models(name, browser, tmp_path):
    frame, targets = table()
    train, test = halves()
    y = targets["multiclass"]
    MODELS[name].fit(frame[train], y[train]).save(tmp_path / "model.arb")
    report = arboost.load(tmp_path / "model.arb").report(frame[test], y[test])
    report.save(tmp_path / "page.html")
    opened = Visit(browser, tmp_path / "page.html")
    opened.draw_all()
    drawn = opened.page.locator(f"#{name}")
    lines = drawn.locator("svg [aria-label=line] path")
    assert lines.count() >= {"learning": 1, "theory": 3, "forest": 1}[name]
    assert all(
        len(path) > 50 for path in lines.evaluate_all("all => all.map(p => p.getAttribute('d'))")
    )
    text = drawn.inner_text()
    assert TEXTS[name] in text
    assert not any(word in text for word in ("undefined", "NaN", "null", "[object"))
    assert opened.messages == []
    opened.close()
