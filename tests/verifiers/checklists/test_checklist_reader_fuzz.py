"""Texts and lists at random: always a verdict, the same twice, and none gained by what a reader cannot see."""

from __future__ import annotations

import json
import os
import time
from random import Random
from typing import Any

import jsonschema
import pytest
from checklist_kit import CASES, HONEST_WATER, PLAIN, REPORT, WATER

from verifiers.checklists.files import checklist_from
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.json_schema import faults_of
from verifiers.checklists.spec import ChecklistSpec, WordsItem
from verifiers.checklists.words.characters import IGNORABLE, visible
from verifiers.contract.errors import SpecError

SECRET = "zanzibar"
HIDERS = [
    "<!-- {} -->", "<!--\n{}\n-->", "\n\n<!-- {}\n\n more -->\n\n", "<span hidden>{}</span>",
    '<p style="display:none">{}</p>',
    "[](<{}>)", "\n\n[note]: http://x.org/{}\n\n", '\n\n[note]: http://x.org "{}"\n\n', "![]({})", "&#8203;<!--{}",
    '<b title="{}">a</b>', '[a](http://x.org "{}")', '![a](x.png "{}")', "![{}](x.png)", "<{}>", "</{}>", "<?{}?>",
    "<!A {}>",
    "\n\n[^9]: {} {}\n\n", "\n\n<script>{}</script>\n\n", "<a href={}>", "\n\n~~~{}\na\n~~~\n\n",
    "\n\n|a|\n|-|\n|1|{}|\n\n",
]  # fmt: skip
"""Around a word, so that no reader of the finished page sees it."""
PIECES = [
    *"#`*_|-[](){}<>!\"'\\ \n\t.,:;0123456789aAbB", "```", "~~~\n", "```python\nx = 1\n```\n", "<!--", "-->",
    "| a | b |\n",
    "|-|-|\n", "- item\n", "1. item\n", "# Summary\n", "> quoted\n", "[H1]", "[H1](http://x.org)", "“the spring”",
    "120",
    "5%", "twenty-one", " million", "\u200b", "\u0435", "\u202e", "北京", "e.g. ", '{"a": 1}', "\r\n", "\x00", "\ud800",
    "evaporation", "rain. ", "The sea is deep. ", "sea", "<b>", "</div>",
    "&lt;", "[^1]", "\n\n", "    code\n", "\t", "\u2028",
]  # fmt: skip
LIST = """question = "Describe the sea."
credit = "items"
[[items]]
item = "words"
required = ["sea"]
[[items]]
item = "count"
of = "sentences"
least = 2
[[items]]
item = "json"
rules = { type = "array" }
[[sources]]
key = "H1"
text = "The sea is deep."
"""
LIST_PIECES = [
    *"=[]{}\"'\n#,. 0123", "item", "[[items]]\n", "least", "most = 1\n", "tolerance = 0.5\n",
    'item = "length"\n', "true",
    'target = 5\n', 'item = "pattern"\n', 'pattern = "("\n', 'item = "soft"\n', 'point = "x"\n', "nan", "weight = 0\n",
    'name = "same"\n', "soft_share = 0.9\n", 'allowed = ["copy"]\n', "1979-05-27",
    '"""', "\\u0000", "\ud800", "[sources]\n",
]  # fmt: skip
SCALARS = [None, True, False, 0, 1, 0.0, 1.0, -0.0, 1.5, 10**20, 1e20, 2**53 + 1, "1", "", "true"]
AROUND = ["The sea is deep. ", "\n\n", "- item\n", "# Head\n\n", "*so* ", "a"]
NAMED = ChecklistSpec(items=(WordsItem(name="named", required=(SECRET,)),))
VERIFIER = HardVerifier()


def _random_text(source: Random, known: list[str]) -> str:
    if source.random() < 0.5:
        return "".join(source.choices(PIECES, k=source.randrange(60)))
    text = source.choice(known)
    for _ in range(source.choice([1, 2, 5, 20])):
        at, end = sorted(source.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + source.choice([0, 1, 30]))
        text = text[:at] + source.choice(["", source.choice(PIECES), text[at:end] * 2]) + text[end:]
    return text


def _texts(source: Random, known: list[str], lists: list[ChecklistSpec]) -> bool:
    text = _random_text(source, known)
    spec = source.choice(lists)
    verdict = VERIFIER.verify(spec, text)
    assert verdict == VERIFIER.verify(spec, text)
    assert verdict.reason.isprintable()
    assert 0 <= verdict.score <= 1
    verdict.model_dump_json()
    assert not IGNORABLE.search(visible(text))
    return verdict.passed


def _hidden(source: Random) -> None:
    """A word that is only where nobody sees it is not there, and gains nothing."""
    hidden = source.choice(HIDERS).replace("{}", SECRET)
    around = "".join(source.choices(AROUND, k=source.randrange(9)))
    text = f"{around}\n\n{hidden}\n"
    assert not VERIFIER.verify(NAMED, text).passed, text
    at = source.choice([place for place, sign in enumerate(HONEST_WATER) if sign == " "])
    altered = HONEST_WATER.replace("runoff", "streams")
    altered = altered[:at] + hidden.replace(SECRET, "runoff") + altered[at:]
    assert not VERIFIER.verify(WATER, altered).passed, altered


def _value(source: Random, depth: int = 3) -> Any:
    inner = range(source.randrange(3)) if depth else ()
    return source.choice(
        [
            lambda: source.choice(SCALARS),
            lambda: [_value(source, depth - 1) for _ in inner],
            lambda: {source.choice("ab"): _value(source, depth - 1) for _ in inner},
        ]
    )()


def _items(source: Random) -> None:
    """Values are told apart as the library of schemas tells them apart."""
    values = [_value(source) for _ in range(source.randrange(5))]
    for rules in (
        {"uniqueItems": True},
        {"const": values[:1]},
        {"enum": values[1:]},
        {"contains": {"type": "integer"}},
    ):
        plain = jsonschema.Draft202012Validator(rules)
        for value in (values, values[:1], *values):
            assert (not faults_of(json.dumps(rules), value)) == plain.is_valid(value), (rules, value)


def _lists(source: Random, folder: Any) -> int:
    text = LIST
    for _ in range(source.choice([0, 1, 1, 2, 4])):
        at = source.randrange(len(text) + 1)
        text = text[:at] + source.choice(LIST_PIECES) + text[at + source.choice([0, 0, 1, 5, 12]) :]
    try:
        spec = checklist_from(text, folder)
    except SpecError:
        return 0
    assert ChecklistSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.hard
    return 1


def fuzz(seed: int, folder: Any, *, rounds: int | None = None, seconds: float = 0.0) -> str:
    """So many rounds, or for so long, of one text of each sort; what was done, in a few words."""
    source = Random(seed)
    known = [case.submission for case in CASES if len(case.submission) < 3_000]
    lists = [case.spec for case in CASES if isinstance(case.spec, ChecklistSpec) and "slow" not in case.name]
    lists = [*lists[:40], REPORT, PLAIN, WATER]
    until = time.monotonic() + seconds
    count = passed = usable = 0
    slowest = 0.0
    while count < rounds if rounds is not None else time.monotonic() < until:
        started = time.process_time()
        passed += _texts(source, known, lists)
        _hidden(source)
        _items(source)
        usable += _lists(source, folder)
        slowest = max(slowest, time.process_time() - started)
        count += 1
    assert slowest < 10, slowest
    return (
        f"seed {seed}: {count} texts ({passed} passed), as many with something hidden, as many JSON values,"
        f" as many lists ({usable} usable), slowest {slowest:.2f} s"
    )


def test_texts_and_lists_get_a_verdict_or_are_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    fuzz(int(os.environ.get("FUZZ_SEED", "1")), tmp_path, rounds=25)


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_ten_minutes_of_texts_and_lists_get_a_verdict_or_are_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    print(fuzz(int(os.environ.get("FUZZ_SEED", "1")), tmp_path, seconds=float(os.environ.get("FUZZ_SECONDS", "600"))))
