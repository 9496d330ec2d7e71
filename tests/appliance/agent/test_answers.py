r"""One answer or none: a box, a fenced block or the whole turn, whatever a hostile turn makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from appliance.agent.answers import Final, blocks, final_answer, written
from appliance.agent.texts import task_of
from appliance.records.jobs import Job, JobFile, JobState
from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.spec import ChecklistSpec, CountItem
from verifiers.contract.kinds import AnswerForm
from verifiers.lean.spec import LeanSpec
from verifiers.programs.spec import ProgramSpec, Run
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

AT = "2026-01-01T00:00:00.000+00:00"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("```python\nprint(6)\n```", "print(6)\n"),
        ("Here it is:\n\n~~~\nprint(6)\n~~~\nThat is all.", "print(6)\n"),
        ("````\n```\ninner\n```\n````", "```\ninner\n```\n"),
        ("~~~\n```\n~~~", "```\n"),
        ("  ```\n    a\n  b\n c\n  ```", "  a\nb\nc\n"),
        ("```\r\nprint(6)\r\n```\r\n", "print(6)\r\n"),
        ("``` python title=x\nprint(6)\n```", "print(6)\n"),
    ],
)
def test_the_one_closed_block_is_the_answer_and_what_stands_around_it_is_not_read(text: str, answer: str) -> None:
    assert final_answer(text, AnswerForm.BLOCK) == Final(answer, 1)


@table(
    ("text", "answers"),
    [
        ("", 0),
        ("print(6)", 0),
        ("\\boxed{6}", 0),
        ("```\nprint(6)", 0),
        ("```\nprint(6)\n``", 0),
        ("````\nprint(6)\n```", 0),
        ("```\nprint(6)\n~~~", 0),
        ("```\nprint(6)\n``` not the end", 0),
        ("```\nprint(6)\u2028```", 0),
        ("```\nprint(6)\x0b```", 0),
        ("``` a`b\nprint(6)\n", 0),
        ("    ```\n    print(6)\n    ```", 0),
        ("> ```\n> print(6)\n> ```", 0),
        ("```\n```", 0),
        ("```\n  \n```", 0),
        ("```\na\n```\n```\na\n```", 2),
        ("```\na\n```\n~~~\nb", 2),
        ("~~~\na\n~~~\n```\n```", 2),
    ],
)
def test_no_block_two_blocks_and_one_that_never_closes_are_no_answer(text: str, answers: int) -> None:
    assert final_answer(text, AnswerForm.BLOCK) == Final(None, answers)


LINES = st.lists(st.sampled_from(["```", "````", "~~~", "a", "", " ```", "``` b"]), max_size=10).map("\n".join)


@settings(max_examples=FROM_STRANGERS)
@given(st.text(alphabet="`~ab\n\r \t", max_size=60) | LINES)
def test_a_block_is_found_again_inside_a_longer_fence(text: str) -> None:
    assert all(not block.closed or block.content.endswith("\n") or not block.content for block in blocks(text))
    found = final_answer(f"{'`' * 61}\n{text}\n{'`' * 61}", AnswerForm.BLOCK)
    assert found == (Final(f"{text}\n", 1) if text.strip() else Final(None, 0))


@pytest.mark.parametrize("text", ["One.\n\n```\ncode\n```\n", "\\boxed{a} and \\boxed{b}", "```\nnever closed"])
def test_a_text_is_the_whole_last_turn(text: str) -> None:
    assert final_answer(f"\n {text} \n", AnswerForm.WHOLE) == Final(text.strip(), 1)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_turn_of_blanks_is_no_text(text: str) -> None:
    assert final_answer(text, AnswerForm.WHOLE) == Final(None, 0)


def job(spec: Spec, *files: JobFile) -> Job:
    return Job(id="j", question="What?", spec=spec, files=files, state=JobState.QUEUED, created=AT, updated=AT)


FILES = (JobFile(name="a.csv", sha256="0" * 64, bytes=12), JobFile(name="b.txt", sha256="1" * 64, bytes=0))
PROGRAM = ProgramSpec(runs=(Run(stdin="1", expected="1"),))
TEXT = ChecklistSpec(items=(CountItem(name="words", of="words", least=1),))


@pytest.mark.parametrize(
    ("spec", "form"),
    [
        (AnswerSpec(notation="digits", expected="6"), AnswerForm.BOXED),
        (AnswerSpec(expected="6"), AnswerForm.BOXED),
        (AnswerSpec(expected="6", final="boxed"), AnswerForm.WHOLE),
        (PROGRAM, AnswerForm.BLOCK),
        (SmtSpec(claim="(assert true)"), AnswerForm.BLOCK),
        (LeanSpec(statement="theorem t : True := sorry"), AnswerForm.BLOCK),
        (TEXT, AnswerForm.WHOLE),
    ],
)
def test_the_form_follows_from_the_kind_of_job(spec: Spec, form: AnswerForm) -> None:
    assert task_of(job(spec)).form is form


def test_a_plain_question_is_asked_as_it_stands_and_others_say_files_and_form() -> None:
    assert task_of(job(AnswerSpec(notation="digits", expected="6"))).question == "What?"
    named = "What?\nFiles in the working folder: a.csv (12 bytes), b.txt (0 bytes)."
    assert task_of(job(AnswerSpec(notation="digits", expected="6"), *FILES)).question == named
    assert task_of(job(PROGRAM)).question == "What?\nEnd with the whole program in one fenced code block."
    assert task_of(job(TEXT)).question == "What?\nYour last turn is the text, and nothing else."


@table("form", [AnswerForm.BOXED, AnswerForm.BLOCK, AnswerForm.WHOLE])
@table("answer", ["6", "\\frac{1}{2}", "def f(x):\n    return x"])
def test_what_is_written_in_a_form_is_read_back(form: AnswerForm, answer: str) -> None:
    read = final_answer(written(answer, form), form)
    assert (read.answer or "").removesuffix("\n") == answer
    assert read.answers == 1
