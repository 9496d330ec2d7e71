"""An owner's rows as a taskset: splits for ever, no row that was changed, sealed questions that stay sealed."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curriculum.contract.errors import CurriculumError, ExhaustedError
from curriculum.contract.task import Split, asked
from curriculum.environments.foreign import FOREIGN_SPEC
from curriculum.own.columns import row_of
from curriculum.own.harbor import not_sealed, not_there, refusal
from curriculum.own.rows import LEVELS, OwnRow, key_of_question, split_of_question, with_levels
from curriculum.own.taskset import FORM_ROWS, OwnContent, OwnTaskset, forms_in, own_taskset, spread
from curriculum.registry import BUILT_IN
from curriculum.sealed import TaskStream, sealed_set
from curriculum.separation.index import SeparationIndex
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec

NAME = "own/sums"


def row(number: int, spec: Spec | None = None) -> OwnRow:
    spec = spec or AnswerSpec(expected=str(2 * number))
    return OwnRow(question=f"What is {number} + {number}?", spec=spec, answer=str(2 * number), origin=f"s:{number}")


def taskset(count: int = 120) -> OwnTaskset:
    content = OwnContent(name="sums", licence="CC0", added="now", rows=with_levels([row(at) for at in range(count)]))
    return OwnTaskset(content.model_copy(update={"digest": content.rows_digest()}))


def test_a_row_without_a_world_is_written_as_rows_were_before_there_were_worlds() -> None:
    written = row(1).model_dump(mode="json")
    assert written.keys() == {"question", "spec", "answer", "origin", "files", "level"}
    assert OwnRow.model_validate(written) == row(1)


def test_a_row_of_a_world_is_a_task_of_that_world_and_says_what_it_lacks() -> None:
    setup = {"package": "nobody_has_this", "item": None}
    played = row(1, FOREIGN_SPEC).model_copy(
        update={"answer": "", "environment": "openenv", "world": setup, "tools": ("step",), "turns": 3}
    )
    assert OwnRow.model_validate(played.model_dump(mode="json")) == played
    content = OwnContent(name="worlds", added="now", rows=(played,))
    made = OwnTaskset(content)
    draft = made.draft_of(played.split, 0, Random(0))
    assert (draft.environment, draft.world, draft.tools, draft.turns) == ("openenv", setup, ("step",), 3)
    assert draft.form is AnswerForm.WORLD
    assert "not installed" in made.missing()
    unknown = content.model_copy(update={"rows": (played.model_copy(update={"environment": "no_such"}),)})
    assert "unknown environment" in OwnTaskset(unknown).missing()


@given(st.text(min_size=1, max_size=80))
def test_a_question_has_one_split_whatever_its_blanks_and_capitals(text: str) -> None:
    assert split_of_question(text) is split_of_question(f"  {text.casefold()}\n")


def test_the_shares_of_the_splits_are_three_one_and_one_in_five() -> None:
    splits = [row(at).split for at in range(5_000)]
    shares = {split: splits.count(split) / len(splits) for split in set(splits)}
    assert shares == pytest.approx({Split.TRAIN: 0.6, Split.VALIDATION: 0.2, Split.SEALED: 0.2}, abs=0.03)


def test_levels_are_five_equal_parts_by_length() -> None:
    rows = with_levels([row(10**at) for at in range(10)])
    assert [one.level for one in rows] == [at * LEVELS // 10 for at in range(10)]


def test_a_sealed_question_is_never_trained_on_and_every_split_asks_its_own_rows() -> None:
    catalog = BUILT_IN.with_domain("own", [taskset()])
    sealed = sealed_set(20, 1, tasksets=(NAME, "digits"), catalog=catalog)
    assert {task.taskset for task in sealed.tasks} == {NAME, "digits"}
    stream = TaskStream(Split.TRAIN, 1, sealed.questions, tasksets=(NAME, "digits"), catalog=catalog)
    splits = {one.key: one.split for one in taskset().content.rows}
    for split, tasks in ((Split.SEALED, sealed.tasks), (Split.TRAIN, stream.tasks(0, 40))):
        assert {splits[task.key] for task in tasks if task.taskset == NAME} == {split}
    assert catalog.task(NAME, 0, 0, Split.TRAIN) == catalog.task(NAME, 0, 0, Split.TRAIN)


def test_a_level_without_a_row_of_the_split_is_passed_over() -> None:
    few = taskset(3)
    catalog = BUILT_IN.with_domain("own", [few])
    empty = next(at for at in range(LEVELS) if not any(one.level == at for one in few.content.rows))
    with pytest.raises(ExhaustedError, match="no sealed row"):
        few.draft_of(Split.SEALED, empty, Random(0))
    tasks = sealed_set(12, 1, tasksets=(NAME, "digits"), catalog=catalog).tasks
    assert len(tasks) == 12


def test_a_file_whose_rows_were_changed_is_not_used() -> None:
    content = taskset(5).content
    text = content.model_dump_json().encode()
    assert own_taskset(text, "sums").content == content
    for changed in (text.replace(b'"answer":"4"', b'"answer":"5"'), text[:-3], b"{}"):
        with pytest.raises(CurriculumError):
            own_taskset(changed, "sums")
    with pytest.raises(CurriculumError):
        own_taskset(text, "other")


def test_what_only_looks_like_a_sealed_question_is_not_called_sealed() -> None:
    sealed = BUILT_IN.task("arithmetic", 1, 2, Split.SEALED).model_copy(
        update={"messages": asked("What is the sum of 12 and 31?"), "key": "sum 12 31"}
    )
    door = not_sealed([sealed])
    near = OwnRow(question="What is the sum of 963 and 636?", spec=sealed.spec, origin="")
    same = near.model_copy(update={"question": sealed.question})
    assert refusal(near, [door]) == "too close to a sealed question that models are evaluated on (other numbers)"
    assert refusal(same, [door]) == "its question is sealed: models are evaluated on it"


def test_what_is_there_or_sealed_comes_through_no_door() -> None:
    sealed = sealed_set(2, 1, tasksets=("digits",)).tasks
    told = OwnRow(question=sealed[0].question.upper(), spec=AnswerSpec(expected="1"), origin="f:1")
    known = {key_of_question("What is 1 + 1?")}
    doors = (not_sealed(sealed), not_there(known))
    assert "sealed" in refusal(told, doors)
    assert "exists already" in refusal(row(1), doors)
    assert refusal(row(2), doors) == ""
    known.add(row(2).key)
    assert "exists already" in refusal(row(2), doors)


def test_nearly_the_text_of_a_sealed_question_comes_through_no_door() -> None:
    (sealed,) = sealed_set(1, 3, levels=(4,), tasksets=("composed_problems",)).tasks
    door = not_sealed([sealed])
    for near in (f"Please work on this. {sealed.question}", sealed.question.replace(" the ", " that ")):
        assert "sealed" in refusal(OwnRow(question=near, spec=AnswerSpec(expected="1"), origin="f:1"), [door])
    clean = OwnRow(question="How many legs do three spiders have?", spec=AnswerSpec(expected="24"), origin="f:2")
    assert refusal(clean, [door]) == ""


def products(count: int, name: str = "sums") -> OwnTaskset:
    """Rows that differ in their numbers alone."""
    rows = [
        row_of({"question": f"What is {a} times {a + b}?", "answer": str(a * (a + b))}, "auto", f"x:{a}.{b}")
        for a in range(10, 10 + count // 10)
        for b in range(10)
    ]
    content = OwnContent(name=name, added="", rows=with_levels(rows))
    return OwnTaskset(content.model_copy(update={"digest": content.rows_digest()}))


def test_rows_of_one_form_are_trained_on_and_told_from_sealed_ones_by_their_numbers() -> None:
    catalog = BUILT_IN.with_domain("own", [products(400)])
    sealed = sealed_set(40, 1, tasksets=["own/sums"], catalog=catalog)
    kept = SeparationIndex(sealed.tasks, forms_in(catalog, ["own/sums", "arithmetic"]))
    stream = TaskStream(Split.TRAIN, 1, sealed.questions, tasksets=["own/sums"], catalog=catalog, kept=kept)
    assert len(stream.tasks(0, 64)) == 64
    asked = sealed.tasks[0].question
    for copy in (asked, asked.replace("What", "Which"), f"Please say: {asked.lower()} Thanks"):
        assert kept.met_by_text(copy) is not None
    few = SeparationIndex(sealed.tasks, ["What is 9 times 9?", "What is 8 times 8?"])
    assert few.met_by_text("What is 7 times 7?") is not None, "what two rows share is no form"


def test_a_second_file_of_the_same_form_is_let_in() -> None:
    own = products(400)
    sealed = sealed_set(40, 1, tasksets=["own/sums"], catalog=BUILT_IN.with_domain("own", [own])).tasks
    door = not_sealed(sealed, own.forms())
    [fresh] = [row for row in products(10, "more").content.rows if row.question == "What is 10 times 10?"]
    fresh = fresh.model_copy(update={"question": "What is 77 times 5?"})
    assert door(fresh) == ""
    asked = next(row for row in own.content.rows if row.question == sealed[0].question)
    assert "sealed" in door(asked)


def test_forms_are_told_from_rows_all_over_a_large_taskset() -> None:
    rows = products(10).content.rows
    assert spread(rows) == rows
    many = rows * (2 * FORM_ROWS // len(rows) + 1)
    assert len(spread(many)) <= FORM_ROWS
    assert spread(()) == ()


def test_what_a_small_taskset_has_left_over_of_its_share_goes_to_the_others() -> None:
    """Night after night, each without what the one before it asked."""
    own = taskset(40)
    names = (NAME, "arithmetic", "divisors")
    rows = own.keys(Split.TRAIN)
    for seed, met in enumerate((frozenset[str](), rows, rows - set(sorted(rows)[:2]))):
        told: list[str] = []
        stream = TaskStream(
            Split.TRAIN,
            seed,
            met,
            dict.fromkeys(names, 40.0),
            names,
            catalog=BUILT_IN.with_domain("own", [own]),
            exhausted=told.append,
        )
        tasks = stream.tasks(0, 24)
        assert stream.tasks(0, 30)[:24] == tasks
        counts = Counter(task.taskset for task in tasks)
        new = len(rows - met)
        assert counts[NAME] == new if met else 4 <= counts[NAME] <= 10
        assert max(counts.values()) <= (12 if met else 10)
        assert not met & {task.key for task in tasks}
        assert told == ([NAME] * 2 if met else [])


def test_where_no_taskset_has_anything_new_a_night_says_so() -> None:
    own = taskset(40)
    catalog = BUILT_IN.with_domain("own", [own])
    stream = TaskStream(Split.TRAIN, 1, own.keys(Split.TRAIN), {NAME: 100.0}, [NAME], catalog=catalog)
    with pytest.raises(ExhaustedError, match="no new question"):
        stream.tasks(0, 1)
