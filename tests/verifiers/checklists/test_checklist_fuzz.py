"""Every reader of texts takes every text: no crash, the same verdict twice, and nothing gained by what nobody sees."""

from __future__ import annotations

import unicodedata

from checklist_kit import HONEST_WATER, PLAIN, REPORT, WATER
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS, examples

from verifiers.checklists.citations import is_verbatim, same_text
from verifiers.checklists.document import Document
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.items import decide_item
from verifiers.checklists.numerals.numbers import numbers_in
from verifiers.checklists.spec import CodeItem, CountItem, FormatItem, JsonItem, OrderItem, ScriptItem, WordsItem
from verifiers.checklists.words.characters import IGNORABLE, bare, plain, visible
from verifiers.checklists.words.prose import sentences, words

PIECES = st.sampled_from(
    [
        *"#`*_|-[](){}<>!\"'\\ \n\t.,:;0123456789aAbB",
        "```",
        "~~~\n",
        "<!--",
        "-->",
        "| a | b |\n",
        "|-|-|\n",
        "- item\n",
        "# Summary\n",
        "> quoted\n",
        "[H1]",
        "[H1](http://x.org)",
        "\u201cthe spring\u201d",
        "120",
        "5%",
        "twenty-one",
        " million",
        "\u200b",
        "\u0435",
        "\U0001f468\u200d\U0001f469",
        "\u5317\u4eac",
        "e.g. ",
        '{"a": 1}',
        "\r\n",
        "\x00",
        "\ud800",
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=300)
VERIFIER = HardVerifier()


@settings(max_examples=examples(150, quick=FROM_STRANGERS), deadline=None)
@given(TEXTS)
def test_every_text_gets_a_verdict(text: str) -> None:
    for spec in (REPORT, PLAIN, WATER):
        verdict = VERIFIER.verify(spec, text)
        assert not verdict.passed
        assert verdict == VERIFIER.verify(spec, text)
        verdict.model_dump_json()


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_every_item_takes_every_text(text: str) -> None:
    document = Document(text)
    kinds = ("words", "sentences", "paragraphs", "lines", "list_items", "headings", "tables", "code_blocks", "links")
    counts = [CountItem.model_validate({"name": "n", "of": of, "least": 0}) for of in kinds]
    others = (
        CodeItem(name="c"),
        FormatItem(name="f", format="markdown"),
        FormatItem(name="j", format="json"),
        JsonItem(name="s", rules='{"type": "object"}'),
        OrderItem(name="o", phrases=("a", "b")),
        ScriptItem(name="l", scripts=("LATIN",)),
        WordsItem(name="w", required=("a",), forbidden=("secret word",)),
    )
    for item in (*counts, *others):
        assert 0 <= decide_item(item, document, ()).grade <= 1
    assert len(words(document.prose)) >= len([block for block in document.of("item") if words(block.text)])


@settings(deadline=None)
@given(TEXTS)
def test_every_fault_has_a_place_in_the_text(text: str) -> None:
    lines = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    for fault in Document(text).faults:
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
        assert str(fault).isprintable()


@settings(deadline=None)
@given(TEXTS)
def test_what_is_made_plain_stays_so(text: str) -> None:
    assert not IGNORABLE.search(visible(text))
    assert bare(plain(text)) == bare(text)
    assert len(sentences(text)) <= len(words(text))


@settings(deadline=None)
@given(st.text('abcdefgh xyz.,;:!?\n"', max_size=60), st.integers(-(10**12), 10**12), st.integers(0, 6))
def test_a_number_is_found_as_it_was_written(before: str, number: int, decimals: int) -> None:
    written = f"{number / 10**decimals:,.{decimals}f}"
    said = [found.said for found in numbers_in(f"{before} \n{written} apples")]
    values = [float(one.value) for one in said if one]
    assert any(abs(value - number / 10**decimals) <= 0.51 / 10**decimals for value in values)


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(20, 120))
def test_every_part_of_a_source_is_verbatim_and_no_changed_one(start: int, length: int) -> None:
    source = same_text(HONEST_WATER)
    pieces = source.split(" ")
    some = pieces[start % (len(pieces) - 12) :][: 6 + length % 6]
    assert is_verbatim(" ".join(some), [source])
    assert not is_verbatim(" ".join([*some[:3], "purple", *some[3:]]), [source])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len("thermodynamics") - 1), st.sampled_from("\u00ad\u0336\u0301\ufe0f"))
def test_marks_inside_a_forbidden_word_do_not_hide_it(at: int, mark: str) -> None:
    word = "thermodynamics"
    text = HONEST_WATER.replace("tiny drops", f"tiny {word[: at + 1]}{mark}{word[at + 1 :]} drops")
    assert not VERIFIER.verify(WATER, text).passed
