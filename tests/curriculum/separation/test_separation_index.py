"""What is a copy of a kept question is found, and what is none is let through."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from curriculum.contract.task import Split, Task, asked
from curriculum.registry import make_task
from curriculum.sealed import TaskStream, sealed_set
from curriculum.seeds import seeds
from curriculum.separation.folding import tokens_of, without_numbers
from curriculum.separation.index import SeparationIndex, TrainedQuestions, text_of
from curriculum.separation.rules import Check, Match
from verifiers.answers.spec import AnswerSpec

SEALED = sealed_set(60, 1, tasksets=("modular_arithmetic", "calendars", "knights", "divisibility"))
QUESTION = "A farmer has 17 sheep and buys 25 more on Monday. How many sheep are in his barn on Tuesday morning?"


def written(text: str, answer: str = "42", taskset: str = "own", key: str = "") -> Task:
    return Task(
        taskset=taskset,
        level=0,
        seed=2,
        split=Split.SEALED,
        messages=asked(text),
        spec=AnswerSpec(expected=answer),
        key=key,
    )


INDEX = SeparationIndex([*SEALED.tasks, written(QUESTION)])


def check_of(match: Match | None) -> Check | None:
    return match.check if match is not None else None


@table(
    ("text", "check"),
    [
        (QUESTION, Check.EXACT),
        (f"  {QUESTION.upper()}\r\n".replace(" ", "  "), Check.EXACT),
        (QUESTION.replace("a", "a\u200b"), Check.EXACT),
        (QUESTION.replace("17", "31").replace("25", "1,008"), Check.NUMBERS),
        (QUESTION.replace("sheep", "goats", 1), Check.WORD),
        (QUESTION.replace("his barn", "barn"), Check.WORD),
        ("Solve: " + QUESTION + " Write the number alone, please.", Check.GRAMS),
        (
            "How many sheep will be in a farmer's barn on Tuesday, if he owns 17 sheep and on Monday gets 25 more?",
            Check.NEAR,
        ),
    ],
)
def test_what_somebody_wrote_is_stopped_where_it_is_a_copy(text: str, check: Check) -> None:
    assert check_of(INDEX.met_by_text(text)) is check


CYRILLIC = str.maketrans("aeopcxyisAEOTMHK", "аеорсхуіѕАЕОТМНК")
GREEK = str.maketrans("AHoviMTu", "ΑΗονιΜΤυ")
WIDE = {code: code + 0xFEE0 for code in range(33, 127)}
DISGUISES = {
    "Cyrillic letters": QUESTION.translate(CYRILLIC),
    "Greek letters": QUESTION.translate(GREEK),
    "full width": QUESTION.translate(WIDE),
    "no blanks": QUESTION.replace(" ", ""),
    "some blanks": QUESTION.replace("e ", "e"),
    "other blanks": QUESTION.replace(" ", "\u00a0"),
    "blank letters": QUESTION.replace(" ", "\u2800"),
    "decimal entities": "".join(f"&#{ord(sign)};" for sign in QUESTION),
    "hexadecimal entities": "".join(f"&#x{ord(sign):x};" for sign in QUESTION),
    "entities of entities": QUESTION.replace("a", "&amp;#97;"),
    "zero width": "\u200b".join(QUESTION),
    "entities of zero width": QUESTION.replace("a", "a&#8203;"),
    "accents": QUESTION.replace("e", "e\u0301"),
    "mathematical letters": QUESTION.replace("a", "𝒂"),
    "several": QUESTION.upper().translate(CYRILLIC).replace(" ", ""),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_copy_that_looks_the_same_or_has_no_blanks_is_found_at_each_door(disguise: str) -> None:
    text = DISGUISES[disguise]
    assert INDEX.met_by_text(text) is not None
    assert INDEX.met_by_result(f"total 3\n{text}\n[1, 4, 9]") is not None


@pytest.mark.parametrize(
    "text",
    [
        "У фермера 17 овец, и в понедельник он покупает ещё 25. Сколько овец у него во вторник утром?",
        "Ένας αγρότης έχει 17 πρόβατα και αγοράζει άλλα 25 τη Δευτέρα. Πόσα έχει την Τρίτη;",
        "किसान के पास 17 भेड़ें हैं और वह सोमवार को 25 और खरीदता है।",
        "Abakersells120rollsbeforenoonandhalfasmanyafterit.Howmanyrollsdoeshesellthatday?",
        "x &lt; 17 &amp;&amp; y &gt; 25",
    ],
)
def test_other_texts_in_other_scripts_or_without_blanks_are_let_through(text: str) -> None:
    assert INDEX.met_by_text(text) is None
    assert INDEX.met_by_result(text) is None


def test_without_blanks_the_numbers_are_still_the_question() -> None:
    sums = SeparationIndex([written("What is the sum of 3 and 51 in decimal digits?")])
    assert sums.met_by_result("log: Whatisthesumof3and51indecimaldigits? 54") is not None
    assert sums.met_by_result("log: Whatisthesumof3and5indecimaldigits? 8") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "17",
        "17 sheep",
        "A baker sells 120 rolls before noon and half as many after it. How many rolls does he sell that day?",
        "Which whole numbers x satisfy x^2 < 17 + 25?",
        "On Monday 25 people came.",
    ],
)
def test_what_somebody_wrote_of_their_own_is_let_through(text: str) -> None:
    assert INDEX.met_by_text(text) is None


def test_the_numbers_are_the_question_where_a_taskset_generated_it() -> None:
    kept, others = (
        [make_task("modular_arithmetic", 2, seed, split) for seed in islice(seeds(split), 60)]
        for split in (Split.SEALED, Split.TRAIN)
    )
    index = SeparationIndex(kept)
    fresh = [task for task in others if task.key not in index.keys]
    assert len(fresh) > 40
    assert [task.key for task in fresh if index.met_by_task(task) is not None] == []
    assert sum(index.met_by_text(text_of(task)) is not None for task in fresh) > 20, "from a stranger they are copies"


def test_a_generated_question_is_stopped_under_another_key_and_in_nearly_the_same_words() -> None:
    sheep = written("17 sheep and 25 sheep stand in a barn: how many are these together?", key="sheep:17,25")
    index = SeparationIndex([sheep])
    same = sheep.model_copy(update={"key": "other"})
    assert check_of(index.met_by_task(sheep)) is Check.KEY
    assert check_of(index.met_by_task(same)) is Check.EXACT
    word = written("17 goats and 25 sheep stand in a barn: how many are these together?", key="other")
    assert check_of(index.met_by_task(word)) is Check.WORD
    assert index.met_by_task(word.model_copy(update={"spec": AnswerSpec(expected="8")})) is None, (
        "it asks for something else"
    )
    other = written("17 sheep and 26 sheep stand in a barn: how many are these together?", key="other")
    assert index.met_by_task(other) is None


def test_a_kept_question_is_found_in_the_middle_of_what_a_tool_gave_back() -> None:
    around = "total 3\n-rw-r--r-- notes.txt\n{}\nTrue\n[1, 4, 9]\n"
    assert check_of(INDEX.met_by_result(around.format(QUESTION))) is Check.EXACT
    assert check_of(INDEX.met_by_result(around.format(QUESTION.replace("buys", "finds")))) is Check.WORD
    long = max(SEALED.tasks, key=lambda task: len(text_of(task)))
    assert check_of(INDEX.met_by_result(around.format(text_of(long)))) is Check.GRAMS
    assert INDEX.met_by_result(around.format("42")) is None


def test_what_the_task_itself_says_may_stand_in_the_result_of_its_tools() -> None:
    task = written(QUESTION.replace("17", "18"))
    assert INDEX.met_by_result(f"question.txt: {text_of(task)}", own=text_of(task)) is None


def test_the_form_of_a_taskset_makes_nothing_alike() -> None:
    form = "Give an exact number: a whole number or a fraction. Answer with the number alone, and nothing else."
    kept = [
        written(f"{text} {form}") for text in ("How long is the way?", "What does the tree weigh?", "How old is Ida?")
    ]
    index = SeparationIndex([*kept, written(f"Which of these is least? {form}")])
    assert index.met_by_text(f"What was the height of the water in the morning of that day? {form}") is None
    assert check_of(index.met_by_text(f"What does a tree weigh? {form}")) is not None


def test_an_empty_index_stops_nothing() -> None:
    empty = SeparationIndex()
    assert empty.met_by_text(QUESTION) is None
    assert empty.met_by_result(QUESTION) is None
    assert empty.met_by_task(written(QUESTION)) is None


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_and_no_text_is_a_copy_by_chance(text: str) -> None:
    assert INDEX.met_by_text(text) is None
    assert INDEX.met_by_result(text) is None
    assert len(without_numbers(tokens_of(text))) <= len(tokens_of(text))


def test_a_stream_draws_anew_what_is_a_copy_and_says_so() -> None:
    first = TaskStream(Split.TRAIN, 4, tasksets=("modular_arithmetic",)).tasks(0, 12)
    planted = first[5].model_copy(update={"key": "under another key"})
    thrown: list[Match] = []
    stream = TaskStream(
        Split.TRAIN, 4, tasksets=("modular_arithmetic",), kept=SeparationIndex([planted]), thrown_out=thrown.append
    )
    tasks = stream.tasks(0, 12)
    assert first[5].id not in {task.id for task in tasks}
    assert [match.kept for match in thrown] == [planted.id]
    assert stream.tasks(0, 12) == tasks


def test_reading_a_flood_takes_no_longer_than_reading_its_beginning() -> None:
    rng = Random(0)
    flood = " ".join(rng.choice(("sheep", "17", "+")) for _ in range(400_000))
    assert len(tokens_of(flood)) <= 20_000
    assert INDEX.met_by_text(flood) is None


def test_a_question_is_met_that_is_a_word_apart_from_a_trained_one_and_has_its_numbers_and_check() -> None:
    trained = TrainedQuestions([written(QUESTION)])
    assert trained.meets(written(QUESTION))
    assert trained.meets(written(QUESTION.replace("Monday", "Friday")))
    assert not trained.meets(written(QUESTION, answer="43"))
    assert not trained.meets(written(QUESTION.replace("17", "18")))
    assert not trained.meets(written(QUESTION.replace("Monday", "Friday").replace("barn", "field")))
    assert not TrainedQuestions().meets(written(QUESTION))
