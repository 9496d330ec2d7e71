"""Rows of pure data as one test: a test for each row costs more than what most rows ask."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Test = Callable[..., None]


def table(
    names: str | Sequence[str], rows: Iterable[Any], *, ids: Callable[[Any], object] | Iterable[object] | None = None
) -> Callable[[Test], Test]:
    """Has a test run for all rows, which are given as to `pytest.mark.parametrize`, and fail with every row that was
    wrong. Fixtures of the test are the same for all rows, so they may hold nothing that a row changes."""
    wanted = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    found = [_values(row, len(wanted)) for row in rows]
    named = list(ids) if ids is not None and not callable(ids) else []

    def label(place: int) -> str:
        values, own = found[place]
        if own or named:
            return str(own or named[place])
        shown = [str(ids(value)) if callable(ids) else repr(value) for value in values]
        return ", ".join(f"{name}={text[:120]}" for name, text in zip(wanted, shown, strict=True))

    def of(test: Test) -> Test:
        parameters = inspect.signature(test).parameters
        assert parameters.keys() >= set(wanted), f"{test.__name__} takes {', '.join(parameters)}"

        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            wrong: list[Exception] = []
            for place, (values, _) in enumerate(found):
                try:
                    test(**dict(zip(wanted, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    one = error if isinstance(error, Exception) else AssertionError(str(error))
                    one.add_note(f"row {place}: {label(place)}")
                    wrong.append(one)
            if wrong:
                raise ExceptionGroup(f"{len(wrong)} of {len(found)} rows are wrong", wrong)

        others = [one for name, one in parameters.items() if name not in wanted]
        whole.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
        del whole.__wrapped__  # type: ignore[attr-defined]  # pytest would look for the fixtures of that
        return whole

    return of


def _values(row: Any, count: int) -> tuple[tuple[Any, ...], str]:
    own = ""
    if isinstance(row, ParameterSet):
        assert not row.marks, "a row of a table has no marks of its own"
        own, row = str(row.id or ""), row.values if count > 1 else row.values[0]
    values = tuple(row) if count > 1 else (row,)
    assert len(values) == count, f"{count} values, not {row!r}"
    return values, own
