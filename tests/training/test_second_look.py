"""The search for the number of rounds looks a second time where it ends in the first rounds."""

import json
import warnings

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from sklearn.metrics import log_loss

import arboost
from arboost.errors import DataWarning
from arboost.formats.model_file import to_bytes
from arboost.training import fit as fits
from support.command_line import run


def _table(seed=4, n_rows=6000):
    """Return rows of few uneven groups and very unequal weights, whose target is learnable."""
    rng = np.random.default_rng(seed)
    group = rng.choice(40, n_rows, p=rng.dirichlet(np.full(40, 0.5)))
    X = rng.normal(size=(n_rows, 6))
    X[:, 5] += rng.normal(size=40)[group]
    effect = 0.6 * rng.normal(size=40)
    score = -2.5 + 1.2 * X[:, 0] + 0.8 * X[:, 1] * (X[:, 2] > 0) + effect[group]
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)
    return X, y, np.exp(2.5 * rng.normal(size=n_rows)), group


def _classifier(**params):
    return arboost.GradientBoostingClassifier(validation_split="group", **params)


def _fit(X, y, weight, group, **params):
    with pytest.warns(DataWarning) as said:
        model = _classifier(**params).fit(X, y, weight, groups=group)
    assert len(said) == 1
    return model, str(said[0].message)


def test_noisy_held_out_rows():
    model, text = _fit(*_table())
    assert "scored best after 2 rounds, and those of 5 other splits after 34, which the" in text
    assert model.model_.n_rounds == model.n_iter_ == 34
    X, y, _, _ = _table(seed=1004, n_rows=20_000)
    first, found = (log_loss(y, model.predict_proba(X, rounds=rounds)) for rounds in (2, None))
    assert found < first - 0.02
    runs = model.model_.provenance["history"]["runs"]
    assert runs[-1]["kind"] == "search"
    assert 2 * runs[-1]["best"] == 34


def test_same_bytes(tmp_path):
    X, y, weight, group = _table()
    first = to_bytes(_fit(X, y, weight, group)[0].model_)
    for n_jobs in (1, 2, 4):
        model, _ = _fit(X, y, weight, group, n_jobs=n_jobs)
        assert to_bytes(model.model_) == first
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    table = pyarrow.table(columns | {"y": y, "w": weight, "g": group})
    named, _ = _fit(table.select([*columns, "y"]), "y", weight, group)
    path = tmp_path / "rows.parquet"
    parquet.write_table(table, path, row_group_size=700)
    with pytest.warns(DataWarning, match="of 5 other splits"):
        streamed = _classifier().fit(path, "y", "w", groups="g", memory_limit="200MB")
    assert to_bytes(streamed.model_) == to_bytes(named.model_)


def test_few_rounds_that_are_right():
    rng = np.random.default_rng(0)
    X, y, _, group = _table()
    noise = rng.permutation(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # plain rows of a target without signal are no fault
        plain = arboost.GradientBoostingClassifier().fit(X, noise)
    assert plain.n_iter_ < 30
    model, text = _fit(X, noise, None, group)
    assert "kept 2, the first ones, and a second look at 5 other splits agrees" in text
    assert model.model_.n_rounds == 2


@pytest.mark.parametrize("kind", ["time", "random"])
def test_other_splits(kind, monkeypatch):
    looked = []
    search = fits._search_rounds

    def early(job, plan, binned, splits, started):
        looked.append(splits)
        found = search(job, plan, binned, splits, started)
        if len(looked) == 1:
            found.best_index = 0
        return found

    monkeypatch.setattr(fits, "_search_rounds", early)
    X, y, _, _ = _table()
    weight = None if kind == "time" else np.ones(len(y))
    with pytest.warns(DataWarning, match=f"of {2 if kind == 'time' else 5} other splits after"):
        arboost.GradientBoostingClassifier(validation_split=kind).fit(X, y, weight)
    (first,), others = looked
    if kind == "time":
        last, before = others
        assert [part.tolist() for part in last] == [part.tolist() for part in first]
        assert before[1][-1] == last[1][0] - 1
        assert before[0][-1] == before[1][0] - 1
        assert len(before[1]) == len(last[1])
    else:
        assert sorted(np.concatenate([split[1] for split in others])) == list(range(len(y)))
        shares = [y[split[1]].mean() for split in others]
        assert max(shares) - min(shares) < 0.01  # classes keep their shares


def test_ordinary_fits_look_once(monkeypatch):
    def refused(*_):
        raise AssertionError("a second look")

    monkeypatch.setattr(fits, "_second_look", refused)
    X, y, _, group = _table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = _classifier().fit(X, y, groups=group)
    assert model.n_iter_ > 10


def test_members_warn_once():
    X, y, weight, _ = _table()
    noise = np.random.default_rng(0).permutation(y)
    bagging = arboost.BaggingClassifier(arboost.GradientBoostingClassifier(), n_estimators=3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        bagging.fit(X, noise, weight)
    assert len(said) <= 1


def test_command_line_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, weight, group = _table()
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    parquet.write_table(pyarrow.table(columns | {"y": y, "w": weight, "g": group}), "t.parquet")
    line = ["train", "t.parquet", "-t", "y", "--weight", "w", "--groups", "g", "--holdout", "0"]
    result = run(*line, "--json")
    assert json.loads(result.out)["trees"] == 34
    assert "warning: The held-out rows of the search for the number of rounds" in result.err
