"""What decides about a foreign data set's answers, and from which numbers its items come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import FOREIGN_SPEC, MOST_ITEMS
from curriculum.foreign.making import BATCHES, DECIDED, STRIDE, OwnCheck, check_of, window
from curriculum.own.rows import LEVELS
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide

PLACES = st.tuples(st.integers(0, BATCHES - 1), st.integers(0, LEVELS - 1))
ANSWERS = {OwnCheck.INTEGER: "-42", OwnCheck.RATIONAL: "7/20", OwnCheck.TEXT: "nacileb"}


@given(PLACES, PLACES, st.integers(1, MOST_ITEMS), st.integers(1, MOST_ITEMS))
def test_two_windows_of_seeds_have_no_number_in_common(
    one: tuple[int, int], other: tuple[int, int], size: int, another: int
) -> None:
    first, second = window(*one, size), window(*other, another)
    assert one == other or first.stop <= second.start or second.stop <= first.start
    assert max(first.stop, second.stop) <= 1 << 31


@pytest.mark.parametrize(("batch", "level", "size"), [(-1, 0, 1), (BATCHES, 0, 1), (0, LEVELS, 1), (0, 0, STRIDE)])
def test_a_window_that_would_leave_its_place_is_refused(batch: int, level: int, size: int) -> None:
    with pytest.raises(CurriculumError):
        window(batch, level, size)


@table("name", DECIDED)
def test_a_check_of_ours_passes_the_answer_and_no_mention_of_it(name: str) -> None:
    known = ANSWERS[DECIDED[name]]
    spec = check_of(name, f" {known} ")
    assert spec is not None
    assert decide(spec, known).outcome is Outcome.PASS
    for mention in (f"the answer is {known}, I think", f"{known} or 1", f"{known}\n{known}", "", f"{known}1"):
        assert decide(spec, mention).outcome is not Outcome.PASS


@pytest.mark.parametrize(("name", "answer"), [("chain_sum", "4 + 3"), ("dice", "1/0"), ("base_conversion", "a\nb")])
def test_an_answer_of_another_form_than_its_data_set_has_gives_no_task(name: str, answer: str) -> None:
    assert check_of(name, answer) is None


@pytest.mark.parametrize("name", ["countdown", "sudoku", "number_sequence", "a_set_of_next_year"])
def test_what_is_in_no_table_has_a_foreign_score_alone(name: str) -> None:
    assert check_of(name, "1") is FOREIGN_SPEC
    assert FOREIGN_SPEC.only_foreign
