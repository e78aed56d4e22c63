"""The page of the losses, from their declarations."""

from __future__ import annotations

import inspect
from contextlib import suppress

from arboost import losses
from arboost.losses import base
from arboost.params.boosting import BOOSTED_RANKER
from arboost.params.suggestions import library_rows
from docs_site import docstrings
from docs_site.markdown import escaped, literal, table

_ARGUMENTS = {"alpha": 0.5, "tweedie_power": 1.5}
_TEXT = """\
# Losses

Values of the parameter `loss` of the gradient boosters. F is the raw score of a row, the sum of \
the trees; the link turns it into the prediction. A loss of one's own is an `arboost.CustomLoss`. \
Names of other libraries are answered with the name here. Use: \
[Predict numbers](../tasks/regress.md), [Custom losses](../tasks/custom_losses.md).
"""


def declared(name: str) -> list[base.Loss]:
    """Return the loss of a name, and its form for three classes if that is another class."""
    found = [losses.make(name, **_ARGUMENTS)]
    if name in losses.CLASSIFICATION:
        with suppress(ValueError):  # some are for two classes only
            found.append(losses.make(name, n_outputs=3, **_ARGUMENTS))
    return found


def page() -> str:
    """Return the page."""
    parts = [_TEXT]
    for title, names in (
        ("Regression", losses.REGRESSION),
        ("Classification", losses.CLASSIFICATION),
    ):
        rows = []
        for name in names:
            rows_here = [row for row in library_rows("losses") if row.ours == name]
            others = [alias for row in rows_here for alias in row.names()]
            for loss in declared(name):
                text = docstrings.parse(inspect.getdoc(type(loss)) or "").summary
                aliases = ", ".join(literal(one) for one in dict.fromkeys(others) if one != name)
                rows.append((literal(name), escaped(text), literal(loss.link), aliases))
        parts += [f"## {title}", table(("loss", "", "link", "other names"), rows, "fields losses")]
    params = [BOOSTED_RANKER[name] for name in ("loss", "target_metric", "gain")]
    rows = [(literal(param.name), ", ".join(map(literal, param.completions))) for param in params]
    about = "Losses of `GradientBoostingRanker` ([theory](../theory/lambdamart.md)), whose scores "
    about += "have no link."
    parts += ["## Ranking", about, table(("parameter", "values"), rows, "fields")]
    return "\n\n".join(parts) + "\n"
