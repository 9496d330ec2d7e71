"""Each hard item by examples on both sides of its border."""

# ruff: noqa: E501 - tables of texts

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from verifiers.checklists.document import Document
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.items import band, decide_item
from verifiers.checklists.spec import (
    ChecklistSpec,
    CitationsItem,
    CitedSource,
    CodeItem,
    CountItem,
    FormatItem,
    HardItem,
    HeadingsItem,
    JsonItem,
    LengthItem,
    NumbersItem,
    OccurrencesItem,
    OrderItem,
    PatternItem,
    ScriptItem,
    SoftItem,
    TableItem,
    WordsItem,
)
from verifiers.checklists.words.prose import word_count
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Outcome

SOURCES = (
    CitedSource(key="A", text="The bridge is 312 metres long. It was “built in haste”, say its critics – and cheaply."),
    CitedSource(key="B", text="Nobody was harmed.", url="https://www.example.org/b/"),
)


def holds(item: HardItem, text: str) -> bool:
    return decide_item(item, Document(text), SOURCES).holds


def found(of: str, text: str) -> int:
    item = CountItem.model_validate({"name": "n", "of": of, "least": 0})
    return int(decide_item(item, Document(text), ()).evidence["found"])


COUNTS = [
    ("words", "Don't count well-known 3.14 twice.", 5),
    ("words", "# A title\n\nand *three* more", 5),
    ("words", "[a link](https://x.org/some-long-name) <b>bold</b>", 3),
    ("words", "Text.\n\n```python\nnot = 'prose'\n```\n", 1),
    ("words", "我爱北京", 4),
    ("words", "Vitamins A, B, C, D, E and K.", 8),
    ("words", "It r/e/m/e/m/b/e/r/s, and it f-o-l-l-o-w-s.", 5),
    ("words", "0 1 2 3 4 5 6 7 8 9", 1),
    ("words", "Two words.[^1]\n\n[^1]: And three below.", 5),
    ("paragraphs", "One.[^1]\n\n[^1]: A note.", 1),
    ("words", "A [link] in two words.\n\n[link]: https://x.org/some-long-name", 5),
    ("words", "-- , . ! ??", 0),
    ("sentences", "Dr. Who came at 3.15 p.m. today. Why? J. Smith knows, e.g. from a letter!", 3),
    ("sentences", "It costs 3.50. That is all...", 2),
    ("sentences", "Wait … what? Yes.", 2),
    ("sentences", "- one\n- two\n- three", 3),
    ("sentences", "这是第一句。这是第二句！", 2),
    ("paragraphs", "One\nand the same.\n\nTwo.\n\n- a list\n\n# A heading\n\nThree.", 3),
    ("paragraphs", "", 0),
    ("list_items", "- a\n* b\n1. c\n2) d\n\n- a\n", 4),
    ("list_items", "-no item\n1.5 metres", 0),
    ("headings", "# A\n## B\n#no\n####### no\n\nC\n=\n", 3),
    ("headings", "```\n# a comment\n```", 0),
    ("tables", "|a|b|\n|-|-|\n|1|2|\n\n|a|b|\n|-|-|\n", 1),
    ("code_blocks", "```\nx\n```\n~~~py\ny\n~~~\n```\n", 2),
    ("links", "See https://a.org, [b](http://b.org) and https://a.org.", 2),
    ("lines", "a\n\nb\n", 2),
    ("lines", "An old silent pond\nA frog jumps into the pond\nSplash! Silence again", 3),
]


@table(("of", "text", "number"), COUNTS)
def test_what_is_counted(of: str, text: str, number: int) -> None:
    assert found(of, text) == number


def test_counts_are_inclusive() -> None:
    item = CountItem(name="n", of="words", least=2, most=3)
    assert [holds(item, "a " * times) for times in (1, 2, 3, 4)] == [False, True, True, False]


def test_the_length_reward_is_that_of_ace_rl() -> None:
    assert band(100, 100, 0.2, 0.5) == band(80, 100, 0.2, 0.5) == band(120, 100, 0.2, 0.5) == 1.0
    assert band(145, 100, 0.2, 0.5) == pytest.approx(0.5)
    assert band(55, 100, 0.2, 0.5) == pytest.approx(0.5)
    assert band(170, 100, 0.2, 0.5) == band(500, 100, 0.2, 0.5) == 0.0


PADDED = [
    ("rain " * 20, 7), ("rain snow " * 10, 9), ("Rain, rain! RAIN; " * 6 + "rain, rain.", 7), ("-".join(["rain"] * 20), 7),
    (" ".join(f"rain{number}" for number in range(20)), 7), ("the sun and the moon shine " * 4, 17),
    ("The cat and the dog saw the bird and the mouse, and then the owl ate the lot of it.", 20),
]  # fmt: skip


@table(("text", "filled"), PADDED)
def test_repetition_fills_no_required_length(text: str, filled: int) -> None:
    for least, most in ((filled, None), (filled + 1, None), (None, filled)):
        count = CountItem(name="n", of="words", least=least, most=most)
        assert holds(count, text) is (least == filled or (least is None and filled == word_count(text)))
    length = LengthItem(name="n", target=20, tolerance=0.1)
    assert holds(length, text) is (filled >= 18)
    assert holds(length.model_copy(update={"unit": "characters", "target": len(text)}), text) is (filled >= 18)


def test_repetition_that_is_allowed_fills_a_length() -> None:
    spec = ChecklistSpec(items=(LengthItem(name="n", target=20, tolerance=0.1),), allowed=("repetition",))
    assert HardVerifier().verify(spec, "rain " * 20).passed
    assert not HardVerifier().verify(spec.model_copy(update={"allowed": ()}), "rain " * 20).passed


@settings(deadline=None)
@given(st.integers(1, 5000), st.integers(0, 20_000))
def test_a_length_further_off_never_earns_more(target: int, length: int) -> None:
    here = band(length, target, 0.2, 0.5)
    assert 0.0 <= here <= 1.0
    further = length + 1 if length >= target else max(0, length - 1)
    assert band(further, target, 0.2, 0.5) <= here


def test_occurrences_are_whole_words_in_any_case() -> None:
    item = OccurrencesItem(name="n", phrase="tea", least=2, most=2)
    assert holds(item, "Tea? Some tea, instead of steam or teapots.")
    assert not holds(item, "Tea and teas")


@pytest.mark.parametrize("text", ["Рот и сор в избе: это хорошо.", "für den Fall", "assure as sure"])
def test_forbidden_words_are_not_seen_where_there_are_none(text: str) -> None:
    assert holds(WordsItem(name="n", forbidden=("pot", "fu", "rassu", "cop")), text)


def test_words_of_scripts_without_spaces_are_found() -> None:
    assert holds(WordsItem(name="n", required=("北京",)), "我爱北京的秋天")
    assert not holds(WordsItem(name="n", forbidden=("北京",)), "我爱北京的秋天")


def test_headings_come_in_order_and_are_filled() -> None:
    item = HeadingsItem(name="n", headings=("Aim", "Method"))
    assert holds(item, "# 1. Aim\n\ntext\n\n## Notes\n\ntext\n\n# **Method**\n\n- a list")
    assert not holds(item, "# Method\n\ntext\n\n# Aim\n\ntext")
    assert not holds(item, "# Aim\n\ntext\n\n# Method\n")
    assert not holds(item, "Aim\n\ntext\n\nMethod\n\ntext")
    assert not holds(HeadingsItem(name="n", headings=("Aim",), only=True), "# Aim\n\nx\n\n# More\n\ny")
    assert not holds(HeadingsItem(name="n", headings=("Aim",), level=2), "# Aim\n\nx")


def test_order_is_that_of_first_occurrences() -> None:
    item = OrderItem(name="n", phrases=("first", "second"))
    assert holds(item, "At first this, and second that.")
    assert not holds(item, "The second before the first.")


def test_a_table_adds_up() -> None:
    item = TableItem(name="n", columns=("What", "Cost"), sums=("Cost",))
    assert holds(item, "|What|Cost|\n|:-|-:|\n|a|$1,000.50|\n|b|2.25|\n|all|1002.75|")
    assert not holds(item, "|What|Cost|\n|-|-|\n|a|1|\n|b|2|\n|all|4|")
    assert not holds(item, "|What|Cost|\n|-|-|\n|a|1|\n|b|two apples|\n|all|1|")
    assert not holds(item, "|What|Cost|\n|-|-|\n|all|1|")


def test_code_is_closed_and_parses() -> None:
    assert holds(CodeItem(name="n", language="python"), "```py\nx = 1\n```")
    assert not holds(CodeItem(name="n", language="rust"), "```py\nx = 1\n```")
    assert not holds(CodeItem(name="n", language="python"), "```python\nx = = 1\n```")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("json", '{"a": [1, null]}', "{'a': 1}"),
        ("json", " 1 ", '{"a": 1, "a": 2}'),
        ("markdown", "# T\n\nx", "no structure at all"),
        ("plain", "Just text, and 2 * 3 = 6.", "Some **bold** text"),
        ("plain", "A line\nand another", "- a\n- b"),
    ],
)
def test_formats(kind: str, good: str, bad: str) -> None:
    item = FormatItem.model_validate({"name": "n", "format": kind})
    assert holds(item, good)
    assert not holds(item, bad)


def test_a_schema_never_reaches_outside() -> None:
    for reference in ("https://json-schema.org/draft/2020-12/schema", "file:///etc/passwd", "other.json", "//x/y"):
        spec = ChecklistSpec(items=(JsonItem(name="n", rules=json.dumps({"$ref": reference})),))
        with pytest.raises(SpecError, match="outside itself"):
            HardVerifier().check(spec)
    inside = {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}, "minItems": 1, "type": "array"}
    assert holds(JsonItem(name="n", rules=json.dumps(inside)), "[1, 2]")
    assert not holds(JsonItem(name="n", rules=json.dumps(inside)), "[1, 2.5]")


@table(
    ("items", "unique"),
    [
        ("[1, true, 0, false, null, \"1\", [], {}, [1], [[1]], {\"a\": 1}, 1.5]", True),
        ("[1, 1.0]", False), ("[0, -0.0]", False), ("[[1], [1.0]]", False), ("[1e400, 1e500]", True), ("[0.1, 0.10]", False), ("[0.1, 0.10000000000000000001]", True),
        ('[{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]', False), ('[{"a": 1}, {"a": true}]', True),
        ('["1,2", "1", ["1", "2"]]', True),
    ],
)  # fmt: skip
def test_items_are_unique_by_their_value(items: str, unique: bool) -> None:
    for rules in ({"uniqueItems": True}, {"$schema": "http://json-schema.org/draft-07/schema#", "uniqueItems": True}):
        assert holds(JsonItem(name="n", rules=json.dumps(rules)), items) is unique
    assert holds(JsonItem(name="n", rules='{"uniqueItems": false}'), items)


def test_very_many_objects_are_told_apart_without_comparing_each_with_each() -> None:
    item = JsonItem(name="n", rules='{"uniqueItems": true}')
    objects = [{"a": n, "b": [n]} for n in range(12_000)]
    assert holds(item, json.dumps(objects))
    assert not holds(item, json.dumps([*objects, {"b": [4], "a": 4}]))


def test_a_schema_that_says_nothing_but_itself_is_a_bad_spec() -> None:
    spec = ChecklistSpec(items=(JsonItem(name="n", rules=json.dumps({"$ref": "#"})),))
    with pytest.raises(SpecError, match="without content"):
        HardVerifier().check(spec, prove=True)


FITS = [
    ({"multipleOf": 0.01}, "0.07", True), ({"multipleOf": 0.01}, "1e999", True), ({"multipleOf": 0.1}, "1.15", False),
    ({"multipleOf": 0.01}, "9" * 4000, True), ({"maximum": 0.3}, "0.30000000000000000001", False),
    ({"const": 2**53 + 1}, str(2**53), False), ({"const": 2**53 + 1}, f"{2**53 + 1}.0", True),
    ({"type": "integer"}, "1.0", True), ({"type": "integer"}, "1.00000000000000000000001", False),
    ({"enum": [0.1]}, "0.1000000000000000055511151231257827", False), ({"minimum": 0}, "1e5000", False),
    ({"minimum": 0}, "1e99999999999999999999", False), ({"minimum": 0}, "0." + "1" * 5000, False),
    ({"format": "date"}, '"2023-02-28"', True), ({"format": "date"}, '"2023-02-30"', False),
    ({"format": "date-time"}, '"2023-02-28T23:59:00"', False), ({"format": "email"}, '"joe at x.org"', False),
    ({"format": "uri"}, '"x.org/a b"', False), ({"format": "uri"}, '"https://x.org/a"', True),
    ({"format": "ipv4"}, '"1.2.3.256"', False), ({"format": "ipv6"}, '"::g"', False), ({"format": "uuid"}, '"x"', False),
    ({"format": "hostname"}, '"-a.org"', False), ({"format": "duration"}, '"P1D2"', False),
    ({"format": "regex"}, '"(?P<a>x)"', False), ({"format": "regex"}, r'"^\\d+$"', True),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "format": "time"}, '"25:00:00Z"', False),
    ({"pattern": r"^\d+$"}, '"٣"', False), ({"pattern": r"^\w$"}, '"é"', False), ({"pattern": "^a$"}, r'"a\n"', False),
    ({"pattern": r"^\s$"}, r'"\ufeff"', True), ({"pattern": r"^\s$"}, r'"\u001c"', False),
    ({"pattern": "^.$"}, '"😀"', True), ({"pattern": "^.$"}, r'"\r"', False), ({"pattern": r"^\p{L}$"}, '"é"', True),
    ({"pattern": r"^(?<q>['\"]).*\k<q>$"}, "\"'a'\"", True), ({"pattern": r"^[\w.\-]+\@x$"}, '"a-b@x"', True),
    ({"patternProperties": {r"^\d$": False}}, '{"٣": 1}', True), ({"patternProperties": {r"^\d$": False}}, '{"3": 1}', False),
    ({"patternProperties": {r"^x-": {}}, "additionalProperties": False}, '{"x-a": 1}', True),
    ({"properties": {"pattern": {"pattern": "^a"}}}, '{"pattern": "b"}', False), ({"type": "string"}, r'"\ud800"', False),
]  # fmt: skip


@table(("rules", "text", "fits"), FITS)
def test_a_schema_is_exact_about_numbers_formats_and_patterns(rules: object, text: str, fits: bool) -> None:
    assert holds(JsonItem(name="n", rules=json.dumps(rules)), text) == fits


@table("pattern", [r"\A", r"^a\Z", "(?P<a>x)", "(?i)a", "(", "a{2,1}", "[b-a]", "^{"])
def test_a_pattern_that_is_not_ecma_is_a_bad_spec(pattern: str) -> None:
    for rules in ({"pattern": pattern}, {"patternProperties": {pattern: False}}):
        with pytest.raises(SpecError, match="ECMA-262") as error:
            HardVerifier().check(ChecklistSpec(items=(JsonItem(name="n", rules=json.dumps(rules)),)))
        assert error.value.hint


@pytest.mark.parametrize("name", ["^[a[b]]$", "^[a-z&&b]$", "^[a~~b]$"])
def test_names_that_two_engines_read_differently_are_a_bad_spec(name: str) -> None:
    with pytest.raises(SpecError):
        HardVerifier().check(
            ChecklistSpec(items=(JsonItem(name="n", rules=json.dumps({"patternProperties": {name: False}})),))
        )


def test_patterns_say_where_they_must_match() -> None:
    pattern = {"name": "n", "pattern": "[a-z]+"}
    text = "abc\ndef"
    outcomes = {
        how: holds(PatternItem.model_validate({**pattern, "how": how}), text) for how in ("found", "whole", "lines")
    }
    assert outcomes == {"found": True, "whole": False, "lines": True}
    assert holds(PatternItem.model_validate({**pattern, "how": "absent"}), "123")
    assert not holds(PatternItem.model_validate({**pattern, "how": "absent"}), "1a3")


QUOTED = [
    ('It "was built in haste, say" its critics [A].', False),
    ("They write “the bridge is 312 metres long” [A].", True),
    ("They write “The bridge is 312 metres long.” [A].", True),
    ('They write "the bridge ... built in haste" [A].', True),
    ('They write "built in haste ... the bridge is" [A].', False),
    ('They write "the bridge is 312 metres long" [B].', False),
    ("> The bridge is 312 metres long. [A]", True),
    ("> The bridge is 313 metres long. [A]", False),
    ("They write «the bridge is 31 metres long» [A].", False),
    ("Short “quotes” are free [A].", True),
    ("It's said that 'the bridge is 312 metres long' [A], isn't it?", True),
    ("It's said that ‘the bridge isn't 312 metres long’ [A].", False),
    ("In the '90s nobody's cats' tails were as long, they'd say [A].", True),
    ("Somebody [C] says so, and [A].", False),
    ("Both [A, B], see [1].", False),
    ("- [x] done [A]\n- [ ] open", True),
    ("See https://example.org/b and [A].", True),
    ("See https://example.org/c and [A].", False),
    ("See [this](http://evil.org) and [A].", False),
    ("Nothing is cited.", False),
    ("It is long [A].[^n]\n\n[^n]: Or so they say.", True),
    ("It is long [A].[^n]", False),
    ("It is long [A], see [B].\n\n[B]: https://example.org/b", True),
    ("It is long [A], see [B].\n\n[B]: https://example.org/c", False),
]


@table(("text", "good"), QUOTED)
def test_citations_exist(text: str, good: bool) -> None:
    assert holds(CitationsItem(name="n"), text) == good


def test_one_quotation_given_twice_is_one() -> None:
    once = 'They write "the bridge is 312 metres long" [A]. '
    assert holds(CitationsItem(name="n", least_quotations=1), once * 2)
    assert not holds(CitationsItem(name="n", least_quotations=2), once * 2)


NUMBERS = [
    ("sums", "120 and 80 make 200, a difference of 40.", True),
    ("sums", "120 and 80 make 201.", False),
    ("sums", "The ratio is 1.5.", False),
    ("all", "The ratio is 1.5, or 150%: 66.67 % the other way, 50% more; the mean is 100.", True),
    ("all", "The product is 9,600 or 9600.00.", True),
    ("all", "About 66.68 %.", False),
    ("none", "A hundred and twenty is one hundred and twenty, eighty is eighty.", True),
    ("none", "Ninety-nine.", False),
    ("none", "120.4 is close to 120", False),
    ("none", "H2O and COVID-19 are names, 2 and 3 are small.", True),
    ("none", "It is -80 degrees.", False),
    ("none", "GPT-4, GPT4, B12, m2, km2, 120 km\u00b2 and x86 are names and units.", True),
    ("none", "It rose9 a day.", False),
    ("none", "It rose by9%.", False),
    ("none", "Since mid-2024.", False),
    ("none", "Total37.", False),
    ("none", "It costs USD999.", False),
    ("none", "It is _7_ long.", False),
    ("none", "It is \uff19\uff19, or \u00bd.", False),
    ("none", "It is 80% of it.", False),
    ("none", "1. first 120\n2. then 80\n7. last", True),
]


@table(("derived", "text", "good"), NUMBERS)
def test_numbers_agree_with_the_facts(derived: str, text: str, good: bool) -> None:
    item = NumbersItem.model_validate({"name": "n", "facts": ("120", "80"), "derived": derived, "free_up_to": 3})
    assert holds(item, text) == good


def test_required_numbers_stand_in_the_text() -> None:
    item = NumbersItem(name="n", facts=("0.25",), required=("25%",))
    assert holds(item, "It is 25 percent.")
    assert not holds(item, "It is 0.25.")


def test_the_script_is_that_of_the_letters() -> None:
    assert holds(ScriptItem(name="n", scripts=("CYRILLIC",), share=0.9), "Это море, 123!")
    assert not holds(ScriptItem(name="n", scripts=("LATIN",), share=0.9), "Это sea")
    assert not holds(ScriptItem(name="n", scripts=("LATIN",)), "123 !")


SOFT = SoftItem(name="s", point="It is friendly.")
BAD_SPECS = [
    (SOFT,),
    (CountItem(name="n", of="words"),),
    (CountItem(name="n", of="words", least=3, most=2),),
    (OccurrencesItem(name="n", phrase="x"),),
    (WordsItem(name="n"),),
    (WordsItem(name="n", required=("Sea",), forbidden=("sea",)),),
    (WordsItem(name="n", required=("--",)),),
    (PatternItem(name="n", pattern="("),),
    (JsonItem(name="n", rules="{}}"),),
    (JsonItem(name="n", rules='{"type": "no type"}'),),
    (CitationsItem(name="n"),),
    (NumbersItem(name="n", facts=("many",)),),
    (NumbersItem(name="n"),),
    (TableItem(name="n", columns=("a",), sums=("b",)),),
    (LengthItem(name="n", target=5, tolerance=1.0),),
    (CountItem(name="n", of="words", least=1), CountItem(name="n", of="lines", least=1)),
]


@table("items", BAD_SPECS, ids=lambda items: "-".join(item.item for item in items))
def test_a_list_that_cannot_decide_is_a_bad_spec(items: tuple[HardItem | SoftItem, ...]) -> None:
    with pytest.raises(SpecError) as error:
        HardVerifier().check(ChecklistSpec(items=items))
    assert error.value.hint


@pytest.mark.parametrize(
    "item",
    [
        WordsItem(name="n", forbidden=("sea",)),
        CountItem(name="n", of="words", most=50),
        JsonItem(name="n", rules="{}"),
        PatternItem(name="n", pattern=".*", how="found"),
    ],
    ids=lambda item: item.item,
)
def test_a_list_that_says_nothing_is_a_bad_spec(item: HardItem) -> None:
    with pytest.raises(SpecError, match="without content"):
        HardVerifier().check(ChecklistSpec(items=(item,)), prove=True)


def test_credit_is_given_only_where_the_spec_asks() -> None:
    items = (WordsItem(name="w", required=("sea",), weight=3), LengthItem(name="l", target=10))
    text = "The sea is wide and deep and calm and blue and cold and old."
    for credit, score in (("none", 0.0), ("items", (3 + 0.8) / 4)):
        spec = ChecklistSpec.model_validate({"items": items, "credit": credit})
        verdict = HardVerifier().verify(spec, " ".join(text.split()[:12]) + " x")
        assert verdict.outcome is Outcome.FAIL
        assert verdict.score == pytest.approx(score)


def test_a_guard_takes_all_credit() -> None:
    spec = ChecklistSpec(
        items=(WordsItem(name="w", required=("sea",)), LengthItem(name="l", target=100)), credit="items"
    )
    assert HardVerifier().verify(spec, "The sea.\u202e").score == 0.0


@table(
    "claim",
    [
        "This answer explains the sea and the wind.", "My short text describes the sea and the wind.",
        "The text above explains the sea and the wind.", "All the required words (the sea, the wind) are included above.",
        "Every requirement of the list, the sea and the wind and whatever else was asked for among them, has been satisfied.",
        "The requested topics, the sea and the wind, are covered.",
        "This answer meets every requirement. It covers the sea and the wind.",
        "It covers the sea and the wind as requested.",
    ],
)  # fmt: skip
def test_a_sentence_about_the_text_itself_counts_for_nothing(claim: str) -> None:
    spec = ChecklistSpec(items=(WordsItem(name="w", required=("sea", "wind")),))
    assert HardVerifier().verify(spec, f"Water goes up where it is warm. {claim}").outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "said",
    ["The text explains the sea and the wind.", "Each of the given points of the compass is a wind above the sea."],
)
def test_a_sentence_about_another_text_counts(said: str) -> None:
    spec = ChecklistSpec(items=(WordsItem(name="w", required=("sea", "wind")),))
    assert HardVerifier().verify(spec, f"Old sailors wrote one. {said}").outcome is Outcome.PASS


@pytest.mark.parametrize("apart", [" ", "\n\n"])
def test_few_sentences_that_say_the_same_are_a_repetition_too(apart: str) -> None:
    said = "The sea is wide and deep and every ship that crosses it needs a crew who can read the wind and waves."
    spec = ChecklistSpec(items=(WordsItem(name="w", required=("sea",)), LengthItem(name="l", target=100)))
    verdict = HardVerifier().verify(spec, apart.join([said] * 5))
    assert "repeats itself" in verdict.reason
    turned = (
        "The sea is wide, and deep. We sail away. The sea is wide and deep! We sail away! The Sea is wide – and deep."
    )
    assert "repeats itself" in HardVerifier().verify(spec, turned).reason
    refrain = "The sea is wide. We sail away. The sea is wide. We come back home. The wind is kind."
    assert "repeats itself" not in HardVerifier().verify(spec, refrain).reason


def test_a_word_in_single_letters_is_one_word() -> None:
    item = LengthItem(name="l", target=12)
    said = "Clouds are w h i t e a n d s o f t, and they drift"
    assert decide_item(item, Document(said), ()).evidence["found"] == 6
    assert decide_item(item, Document("Plan A or plan B is what we take"), ()).evidence["found"] == 9


def test_words_in_a_row_are_no_text() -> None:
    spec = ChecklistSpec(items=(WordsItem(name="w", required=("sea", "wind")),))
    row = "sea wind ship crew sail storm sun rain cloud river wave harbour"
    assert "without a sentence" in HardVerifier().verify(spec, row).reason
    assert HardVerifier().verify(spec, f"- {row}\n\nWhere the sea is, the wind is.").outcome is Outcome.FAIL
    poem = "so wide the sea so strong the wind that even ships lie still in harbours now"
    assert HardVerifier().verify(spec, poem).outcome is Outcome.PASS


def test_evidence_goes_item_by_item() -> None:
    items = (WordsItem(name="w", required=("sea",)), LengthItem(name="l", target=100))
    verdict = HardVerifier().verify(ChecklistSpec(items=items), "The sea is deep.")
    shown = [(item["name"], item["holds"]) for item in verdict.evidence["items"]]
    assert shown == [("w", True), ("l", False)]
    assert "4 words" in verdict.reason


LARGE = ["[" * 200_000, "<!--" * 50_000, "|" * 200_000, "`" * 200_000, "a " * 100_000, "\n" * 200_000, '"' * 200_000]
LARGE += [
    "[a](" * 50_000,
    "<a " * 60_000,
    "* " * 100_000,
    "1," * 100_000,
    "twenty " * 28_000,
    "(" * 200_000,
    "a.b." * 50_000,
    " 'a" * 66_000,
]


@table("text", LARGE, ids=lambda text: ascii(text[:8]))
def test_large_texts_are_answered_soon(text: str) -> None:
    items: tuple[HardItem, ...] = (
        CitationsItem(name="c"),
        NumbersItem(name="n", facts=("1", "2"), derived="all"),
        CountItem(name="s", of="sentences", least=1),
        WordsItem(name="w", forbidden=("secret",)),
        TableItem(name="t", columns=("a",)),
        HeadingsItem(name="h", headings=("A",)),
    )
    verdict = HardVerifier().verify(ChecklistSpec(items=items, sources=SOURCES), text[:200_000])
    assert not verdict.passed
    assert len(verdict.model_dump_json()) < 20_000


def test_the_verdict_grows_no_larger_than_its_bound() -> None:
    items = tuple(PatternItem(name=f"{'x' * 90}{at}", pattern="q+") for at in range(100))
    verdict = HardVerifier().verify(ChecklistSpec(items=items), "q" * 50 + " and more of it")
    assert verdict.passed
    assert len(verdict.evidence["items"]) == 100
    assert len(verdict.model_dump_json()) < 30_000


@pytest.mark.parametrize("digits", [4_300, 4_301, 50_000])
def test_a_number_that_is_too_long_to_be_read_is_told_in_words_of_ours(digits: int) -> None:
    found = decide_item(FormatItem(name="json", format="json"), Document("[" + "7" * digits + "]"), ())
    assert found.holds == (digits == 4_300)
    if not found.holds:
        assert found.reason == "not JSON: an integer of more than 4300 digits"
