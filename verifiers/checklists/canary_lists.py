"""The lists of the canaries, and honest texts that fulfil them."""

from __future__ import annotations

import json

from verifiers.checklists.spec import (
    ChecklistSpec,
    CitationsItem,
    CodeItem,
    CountItem,
    FormatItem,
    HeadingsItem,
    JsonItem,
    LengthItem,
    NumbersItem,
    OccurrencesItem,
    PatternItem,
    ScriptItem,
    SoftItem,
    Source,
    TableItem,
    WordsItem,
)

WATER = ChecklistSpec(
    question="Explain the water cycle to a child of eight. Name evaporation, condensation, precipitation and runoff.",
    items=(
        WordsItem(
            name="the four steps",
            required=("evaporation", "condensation", "precipitation", "runoff"),
            forbidden=("thermodynamics",),
        ),
        LengthItem(name="about ninety words", target=90),
        CountItem(name="two paragraphs", of="paragraphs", least=2, most=3),
        SoftItem(name="for a child", point="A child of eight can follow it."),
    ),
)
RAIN = ChecklistSpec(
    items=(
        WordsItem(name="words", required=("evaporation", "rain")),
        CountItem(name="two sentences", of="sentences", least=2),
    )
)
HONEST_WATER = """\
Water never stays in one place for long. When the sun warms a lake or the sea, some of the water turns into a \
gas that we cannot see and rises into the air. That is called evaporation. High above us the air is cold, so the \
gas becomes tiny drops again. This step is condensation, and the drops together make a cloud.

When the drops grow heavy they fall down as rain, snow or hail: precipitation. Some of it sinks into the ground, \
and the rest flows over the land as runoff, into rivers and back to the sea, where the journey starts again."""

BEES = """\
My grandmother keeps bees behind her house. Every spring she checks the hives and paints a new number on each of \
them. The neighbours complain about it sometimes, but they like the honey that she gives them.

Last year a swarm moved into the chimney. We lit a small fire, waited for an hour, and carried the bees back in \
a basket. Nobody was stung, which my uncle called a miracle. He wrote it into the family book and drew a bee \
beside it."""
NOTICE = ChecklistSpec(
    question="The library closes at noon on Friday because the heating is repaired. Books can be returned at the side"
    " door. Write a notice that says so, in three sentences, with the day and the door.",
    items=(
        WordsItem(name="words", required=("Friday", "side door")),
        CountItem(name="three sentences", of="sentences", least=3, most=4),
    ),
)
REPORT = ChecklistSpec(
    question="Summarise the harvest report for the board, with a table of the figures.",
    sources=(
        Source(
            key="H1",
            url="https://example.org/harvest",
            text="The northern fields gave 120 tonnes of wheat this year. The southern fields gave 80 tonnes, fewer"
            " than last year, because the spring was dry for six weeks in a row.",
        ),
        Source(key="H2", text="Prices rose by 5% over the year."),
    ),
    items=(
        HeadingsItem(name="sections", headings=("Summary", "Figures")),
        TableItem(name="the table", columns=("Field", "Tonnes"), least_rows=3, sums=("Tonnes",)),
        CitationsItem(name="sources", least=2, least_quotations=1),
        NumbersItem(name="figures", from_sources=True, facts=("120", "80"), derived="sums", required=("200",)),
    ),
)
HONEST_REPORT = """\
# Summary

The harvest came to 200 tonnes of wheat [H1]. The south fell behind "because the spring was dry for six weeks in a \
row" [H1], while prices rose by 5% [H2].

# Figures

| Field | Tonnes |
|-------|-------:|
| North | 120 |
| South | 80 |
| Total | 200 |
"""

PERSON = json.dumps(
    {
        "type": "object",
        "required": ["name", "age"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
        },
    }
)
JSON = ChecklistSpec(items=(JsonItem(name="a person", rules=PERSON),))
JSON_ROWS = ChecklistSpec(items=(JsonItem(name="people", rules='{"type": "array", "minItems": 50}'),))
JSON_BLOCK = ChecklistSpec(items=(JsonItem(name="a person", rules=PERSON, within="block"),))
PLAIN = ChecklistSpec(
    question="Write one sentence about the sea in plain text, without naming blue.",
    items=(
        FormatItem(name="plain", format="plain"),
        CountItem(name="one sentence", of="sentences", least=1, most=1),
        WordsItem(name="words", required=("sea",), forbidden=("blue",)),
        CountItem(name="enough", of="words", least=6),
        ScriptItem(name="Latin letters", scripts=("LATIN",), share=0.99),
    ),
)
CODE = ChecklistSpec(
    items=(
        CodeItem(name="a program", language="python"),
        OccurrencesItem(name="says why", phrase="because", least=1),
    )
)
PATTERN = ChecklistSpec(items=(PatternItem(name="a date", pattern=r"\d{4}-\d{2}-\d{2}", how="whole"),))
SLOW = ChecklistSpec(items=(PatternItem(name="slow", pattern=r"(a+)+$", how="whole"),))
ESSAY = ChecklistSpec(
    items=(
        WordsItem(name="subject", required=("prompt injection",)),
        CountItem(name="enough", of="words", least=15),
    ),
    allowed=("injection",),
)


HONEST_NOTICE = (
    "Dear readers, our heating is being mended. On Friday we shut our doors at twelve. Please bring your books to the"
    " side door."
)
