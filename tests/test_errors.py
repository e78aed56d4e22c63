"""Errors of the library: what programs read instead of their text."""

import pickle

import pytest

from arboost.errors import (
    ArboostError,
    InputError,
    MissingCompilerError,
    MissingPackageError,
    ParameterTypeError,
    SchemaError,
    error_prefix,
)

ERRORS = [
    InputError("The file is in UTF-16.", "Save it as UTF-8.", parameter="format"),
    ParameterTypeError("n_jobs='4' is not allowed.", parameter="n_jobs"),
    MissingPackageError("Reading files", "pyarrow", "files"),
    MissingCompilerError("device='cuda'", "nvidia-cuda-nvrtc-cu12", "cuda"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_attributes_survive_pickling(error):
    """Workers send their errors to the driver."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy), copy.category) == (str(error), vars(error), error.category)


def test_message_is_problem_and_advice():
    assert str(ERRORS[0]) == "The file is in UTF-16. Save it as UTF-8."
    assert str(SchemaError("no column")) == "no column"


def test_prefix_keeps_the_attributes():
    with (
        pytest.raises(InputError, match=r"^part2\.csv: The file") as caught,
        error_prefix("part2.csv"),
    ):
        raise ERRORS[0]
    assert caught.value.advice == "Save it as UTF-8."
    assert caught.value.parameter == "format"
    assert caught.value.problem == "part2.csv: The file is in UTF-16."


def test_prefix_of_other_errors():
    with pytest.raises(ValueError, match=r"^rows: odd$") as caught, error_prefix("rows"):
        raise ValueError("odd")
    assert not isinstance(caught.value, ArboostError)
