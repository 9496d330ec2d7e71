"""The yearbooks of the research corpus: what they state is read back, and an answer needs every volume asked about."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from plain_worlds import plain_world

from curriculum.environments.research import RESEARCH
from curriculum.environments.research.inquiries import Form, Inquiry, answer_of, described, drawn_inquiry, parsed
from curriculum.environments.research.oracle import ResearchOracle, entries_in
from curriculum.environments.research.yearbooks import (
    VOLUMES,
    Entry,
    StandingEntry,
    houses,
    in_years,
    register,
    settled,
    volume_text,
)
from curriculum.registry import make_draft

EDITION = 3
HOUSE = houses(EDITION)[0]
GIVEN = Entry(1850, "told", "gifts", 1850, "A", "the roof", 100)
FORMS: tuple[Form, ...] = ("total", "leader", "match")


def later(kind: str, year: int, **changed: object) -> Entry:
    return GIVEN._replace(kind=kind, year=year, **changed)  # type: ignore[arg-type]


def test_a_volume_states_its_entries_and_no_others() -> None:
    found = register(EDITION, HOUSE)
    assert len(found.entries) == VOLUMES
    for year, entries in found.entries.items():
        read = entries_in(volume_text(EDITION, HOUSE, year), year)
        assert sorted((one.kind, one.account, one.of, one.matter) for one in read) == sorted(
            (one.kind, one.account, one.of, one.matter) for one in entries
        )
        # Members have no amounts, and whoever recalls or strikes out an entry states none.
        stated = ("told", "changed")
        assert sorted(one.amount for one in read if one.kind in stated) == sorted(
            one.amount for one in entries if one.kind in stated
        )


def test_the_last_correction_of_an_entry_holds_and_a_repetition_adds_nothing() -> None:
    stands = StandingEntry(1850, "A", "the roof", 100)
    assert settled([GIVEN, later("repeated", 1851)], "gifts") == [stands]
    changed = [later("changed", 1852, amount=7), GIVEN, later("changed", 1851, amount=90)]
    assert settled(changed, "gifts") == [stands._replace(amount=7)]
    moved = [GIVEN, later("moved", 1851, other="B"), later("changed", 1852, amount=7)]
    assert settled(moved, "gifts") == [stands._replace(person="B", amount=7)]
    assert settled([GIVEN, later("struck", 1851)], "gifts") == []
    assert settled([GIVEN, later("struck", 1851), later("restored", 1853)], "gifts") == [stands]
    assert settled([later("struck", 1851)], "gifts") == [], "a correction of an entry in no volume that counts"
    assert settled([GIVEN, later("struck", 1851)], "gifts", naive=True) == [stands]


@pytest.mark.parametrize(
    ("form", "volumes"),
    [(form, volumes) for form in FORMS for volumes in (1, 4, 15) if form != "leader" or volumes > 1],
)  # in one volume a person occurs once in a matter, so nobody leads
def test_an_inquiry_is_read_back_from_its_words_and_corrections_decide_it(form: Form, volumes: int) -> None:
    rng = Random(volumes)
    house, asked = drawn(form, volumes, rng)
    assert parsed(described(asked, "the Star of Law")) == (asked, "the Star of Law")
    entries = in_years(register(EDITION, house), asked.first, asked.last)
    assert answer_of(asked, entries) is not None
    assert asked.last - asked.first == volumes - 1
    if volumes > 1:
        assert answer_of(asked, entries) != answer_of(asked, [one for one in entries if one.kind == "told"])


def drawn(form: Form, volumes: int, rng: Random) -> tuple[int, Inquiry]:
    for house in houses(EDITION):
        try:
            return house, drawn_inquiry(EDITION, house, rng, form, volumes)
        except LookupError:
            continue
    raise AssertionError


def test_without_any_of_its_volumes_a_total_is_another() -> None:
    for seed in range(5):
        house, asked = drawn("total", 15, Random(seed))
        found, years = register(EDITION, house), range(asked.first, asked.last + 1)
        entries = in_years(found, asked.first, asked.last)
        without = [answer_of(asked, [one for one in entries if one.year != year]) for year in years]
        assert answer_of(asked, entries) not in without


def test_no_single_result_of_a_search_has_the_answer(tmp_path: Path) -> None:
    """Not to the question, its words, nor those of the yearbooks; a name is not set apart from the others there."""
    totals = [
        draft for seed in range(400) for draft in [make_draft("research", seed % 5, seed)]
        if draft.topic == "yearbook_totals" and draft.world["edition"] == EDITION
    ][:8]  # fmt: skip
    assert len(totals) == 8
    for at, draft in enumerate(totals):
        call = plain_world(RESEARCH, draft.world, tmp_path / str(at))
        question = draft.messages[0].text
        shown = "".join(
            call("search", {"query": query[:400]}) for query in (question, draft.answer, "sum of all gifts")
        )
        assert draft.answer not in shown


def test_a_page_that_tells_the_answer_to_an_inquiry_is_not_shown(tmp_path: Path) -> None:
    draft = next(
        draft for seed in range(400) for draft in [make_draft("research", 1, seed)] if draft.topic == "yearbook_totals"
    )
    phrase = draft.world["phrases"][0]
    corpus = RESEARCH.files(draft.world)["corpus.json"].decode()
    leak = f'{corpus[:-1]},["p9001","A leak","Answer for {phrase.upper()}: {draft.answer} planted."]]'
    call = plain_world(RESEARCH, draft.world, tmp_path, {"corpus.json": leak.encode()})
    assert "planted" not in call("search", {"query": "planted leak answer"})
    assert ResearchOracle(call).value(phrase).text == draft.answer
