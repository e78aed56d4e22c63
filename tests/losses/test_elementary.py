"""The core's own exp and log: the same bits on every machine, and close to the exact numbers."""

import math
import re
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

import arboost
from arboost.backend import core
from arboost.estimators.adaboost.schemes import ClassScheme

# Functions whose last bit depends on the C library, or on NumPy's instruction set.
_TRANSCENDENTAL = re.compile(
    r"\b(?:np|math)\.(?:log|log2|log10|log1p|logaddexp|exp|exp2|expm1|power|float_power|pow|cbrt"
    r"|sin|cos|tan|sinh|cosh|tanh|arctan|arctanh|arcsinh|arccosh|atan|atanh|erf|gamma|lgamma)\("
)
# Results that reach neither a model nor a prediction.
_ALLOWED = {
    "losses/losses.py": 1,  # a docstring: the user's own function
    "selection/comparison.py": 1,  # digits of a score in a table
    "text.py": 1,  # digits of a number as text
    "report/table.py": 1,  # digits of a number on a page
    "report/data.py": 1,  # drift of a column, rounded
}
KNOWN = [
    "-0x1.34378fcbda721p+0",
    "-0x1.5963447f87fb5p+9",
    "-0x1.6d3c324e13f4fp-2",
    "0x1.599058c8c1a96p+0",
    "0x1.f52f93df4dfcfp-1011",
]


def exact(function, x):
    with localcontext() as context:
        context.prec = 40
        number = Decimal(x)
        return {"log": number.ln, "log1p": (1 + number).ln, "exp": number.exp}[function]()


NUMBERS = np.concatenate(
    [
        np.random.default_rng(0).random(200),
        1 + np.random.default_rng(1).normal(size=200) * 1e-3,
        np.exp(np.random.default_rng(2).normal(size=200) * 100),
        [1.0, 2.0, 0.5, math.sqrt(2), math.sqrt(0.5), 5e-324, 2.3e-308, 1.7e308],
    ]
)


@pytest.mark.parametrize(("function", "most"), [("log", 0.6), ("log1p", 0.6)])
def test_logarithms_are_nearly_exact(function, most):
    given = NUMBERS if function == "log" else NUMBERS[:200] * np.resize([1e-9, -0.99, 7.0], 200)
    actual = getattr(core, function)(given)
    for x, y in zip(given.tolist(), actual.tolist(), strict=True):
        true = exact(function, x)
        assert abs(Decimal(y) - true) <= Decimal(most) * Decimal(math.ulp(float(true)))


def test_exponentials_are_nearly_exact():
    given = np.random.default_rng(3).normal(size=300) * 200
    for x, y in zip(given.tolist(), core.exp(given).tolist(), strict=True):
        true = exact("exp", x)
        assert abs(Decimal(y) - true) <= 3 * Decimal(max(math.ulp(float(true)), 5e-324))


def test_limits():
    inf, nan = math.inf, math.nan
    np.testing.assert_array_equal(
        core.log(np.array([0.0, -0.0, inf, -1.0, nan, 1.0])), [-inf, -inf, inf, nan, nan, 0.0]
    )
    np.testing.assert_array_equal(
        core.log1p(np.array([-1.0, inf, -2.0, nan, 0.0])), [-inf, inf, nan, nan, 0.0]
    )
    np.testing.assert_array_equal(
        core.exp(np.array([-inf, inf, 710.0, nan, 0.0])), [0.0, inf, inf, nan, 1.0]
    )


def test_numbers_and_arrays_of_any_shape():
    for function in (core.log, core.log1p, core.exp):
        table = NUMBERS[:600].reshape(3, 10, 20) / 1e3
        actual = function(table[:, ::2, :])
        assert actual.shape == (3, 5, 20)
        for x, y in zip(table[:, ::2, :].ravel().tolist(), actual.ravel().tolist(), strict=True):
            assert function(x) == y
        assert function(np.zeros((0, 3))).shape == (0, 3)


BITS = """
from arboost.backend import core
found = [core.log(0.3), core.log(1e-300), core.log1p(-0.3), core.exp(0.3), core.exp(-700.1)]
print(*(number.hex() for number in found))
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2", None])
def test_known_bits(isa, instruction_sets):
    """Recorded once: any other machine must find the same."""
    assert instruction_sets.run(isa, BITS).split() == KNOWN


def test_real_votes_use_no_other_logarithm(monkeypatch):
    """Votes of real AdaBoost took NumPy's logarithm, whose last bits differ between machines."""

    def refuse(*_):
        raise AssertionError("a logarithm of NumPy")

    for name in ("log", "log1p", "arctanh"):
        monkeypatch.setattr(np, name, refuse)
    cover = np.array([3.0, 5.0])
    two = ClassScheme(algorithm="real", n_classes=2, rate=1.0)
    more = ClassScheme(algorithm="real", n_classes=3, rate=1.0)
    votes = two.unit_votes(np.array([[0.5], [-0.5]]), cover)
    np.testing.assert_allclose(np.tanh(votes[:, 0]), [0.375, -0.5 * 5 / 6])
    assert two.unit_votes(np.array([[-0.5], [0.5]]), cover).tolist() == (-votes).tolist()
    assert more.unit_votes(np.full((2, 3), 1 / 3), cover) == pytest.approx(0.0)


def test_no_transcendental_function_of_numpy_reaches_a_model():
    root = Path(arboost.__file__).parent
    actual = {
        path.relative_to(root).as_posix(): len(_TRANSCENDENTAL.findall(path.read_text("utf-8")))
        for path in sorted(root.rglob("*.py"))
    }
    assert {path: count for path, count in actual.items() if count} == _ALLOWED
