"""What an error is called on a wire is what it is on the other side."""

from __future__ import annotations

import pytest
from tables import table

from runtime.broker.messages import WireFailure
from runtime.errors import ERRORS, BadRequestError, ErrorName, SandboxError, name_of


@table(("name", "kind"), ERRORS.items())
def test_an_error_comes_back_as_itself(name: ErrorName, kind: type[SandboxError]) -> None:
    error = kind("it is so", hint="Do that.")
    assert name_of(error) == name
    back = WireFailure.model_validate_json(WireFailure.of(error).model_dump_json()).exception()
    assert (type(back), str(back), back.hint) == (kind, "it is so", "Do that.")


@pytest.mark.parametrize(
    ("name", "builtin"), [("missing", FileNotFoundError), ("denied", PermissionError), ("folder", IsADirectoryError)]
)
def test_what_is_wrong_with_a_path_is_pythons_own_error_too(name: ErrorName, builtin: type[OSError]) -> None:
    assert issubclass(ERRORS[name], builtin)
    assert issubclass(ERRORS[name], BadRequestError)
