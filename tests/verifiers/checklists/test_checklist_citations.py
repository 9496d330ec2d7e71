"""Quotations and sources, in every form in which a reader sees them."""

# ruff: noqa: E501, ISC004 - tables of texts

from __future__ import annotations

import time

import pytest
from tables import table

from verifiers.checklists.document import Document
from verifiers.checklists.items import decide_item
from verifiers.checklists.quotations import is_verbatim, same_text
from verifiers.checklists.spec import CitationsItem, CitedSource

BRIDGE = (
    "The bridge is 312 metres long. It was “built in haste”, say its critics – and cheaply. Nobody was harmed when the"
    " farmers' market moved. The old mill stands on the northern bank."
)
HARVEST = "The harvest was 120 tonnes, and prices rose by 5% over the year."
ADDRESS = "https://example.org/harvest"
LETTERS = (CitedSource(key="A", text=BRIDGE), CitedSource(key="B", text=HARVEST, url=ADDRESS))
NUMBERED = (CitedSource(key="1", text=BRIDGE), CitedSource(key="2", text=HARVEST, url=ADDRESS))
NAMED = (CitedSource(key="Smith 2020", text=BRIDGE), CitedSource(key="Jones & Lee 2019", text=HARVEST))
NAP = (
    CitedSource(
        key="A",
        text=(
            "A short nap does not improve recall of lists in adults, but it does reduce errors. It doesn't hurt children. It was"
            " cheap. Most people name safety, not distance, as their reason. They did, in no case, feel better afterwards."
            " The ferry rarely if ever arrives on time. It is unlikely that the ice will last for long."
        ),
    ),
)
CHINESE = (CitedSource(key="报告", text="北方的田地今年收获了一百二十吨小麦，价格上涨了百分之五。"),)
MARKS = "„{}“ „{}” „{}\" »{}« «{}» «\u202f{}\u202f» “{}” ”{}” \"{}\" ＂{}＂ ‘{}’ ‚{}‘ '{}' ‹{}› ›{}‹ 「{}」 『{}』 ``{}'' ''{}'' <q>{}</q> ❝{}❞ 〝{}〞 **“{}”** \"*{}*\""
LIE = "the bridge was torn down in spring"
TRUE = "the bridge is 312 metres long"


def holds(text: str, sources: tuple[CitedSource, ...] = LETTERS, **fields: object) -> bool:
    return decide_item(CitationsItem.model_validate({"name": "c", **fields}), Document(text), sources).holds


@table("marks", MARKS.split(" "))
def test_a_quotation_is_one_in_all_marks(marks: str) -> None:
    assert holds(f"The report says: {marks.replace('{}', TRUE)} [A].", least_quotations=1)
    assert not holds(f"The report says: {marks.replace('{}', LIE)} [A].")


FORGED = [
    f"> {LIE} [A]", f"- > {LIE} [A]", f"> > {LIE} [A]", f"## “{LIE}”\n\nSo says [A].", f"> **“{LIE}”** [A]",
    f"| Says | Who |\n|---|---|\n| “{LIE}” | [A] |", f"See [A].[^n]\n\n[^n]: It says “{LIE}”.", f"“{LIE} [A].",
    f"> {TRUE}.\n> It was torn down in spring.\n> — [A]", "“The bridge is ... torn down in spring” [A].",
    "“The bridge is [not] 312 metres long” [A].", "“The bridge is [a wreck that was torn down in spring]” [A].",
    "“The bridge is 313 metres long” [A].", f"“{TRUE}” [B].", "It says “the harvest was 120 tonnes” [A].",
    "The 'farmers' market was torn down in spring' [A].", "[A] says: ‘the farmers' market was torn down in spring’.",
    f"`“x”` “{LIE}” [A]", f"[“{LIE}”]({ADDRESS}) [A]", f"“{TRUE}” and “{LIE}” [A].",
]  # fmt: skip
QUOTED = [
    f"> {TRUE}.\n\nSo says [A].", f"> {TRUE}.\n> — Report [A]", f"> “{TRUE}.”\n>\n> — the report, p. 3 [A]",
    "> **Note:** this summary rests on one report only. [A]", "> [!TIP]\n> Read the report before you cross it.\n\n[A].",
    "“[T]he bridge is 312 metres long” [A].", "“The bridge [over the river] is 312 metres long” [A].",
    "“The bridge is 312 metres long […] and cheaply” [A].", "“is 312 metres long. It was ‘built in haste’” [A].",
    "“nobody was harmed when the farmers’ market moved” [A].", "'nobody was harmed when the farmers' market moved' [A].",
    f"“{TRUE} [A]”", f"“{TRUE},” says [A].", "In the '90s nobody's cats' tails were as long, they'd say [A].",
    "A 5\" pipe and a 6\" pipe run below it [A].", "'Tis rock 'n' roll on the farmers' market, as the traders' wives say [A].",
    f"“{TRUE}”; “prices rose by 5% over the year” [B].", "Toys for 'boys' are better than 'girls' toys [A].",
    "The tag `<a title=\"go to the next page now\">` and `a[0]` are code; so is `https://x.org` [A].",
]  # fmt: skip


@table("text", FORGED)
def test_what_no_source_says_is_not_quoted(text: str) -> None:
    assert not holds(text)


@table("text", QUOTED)
def test_people_quote_in_many_ways(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [f"“{TRUE}” [A]. “{TRUE[:-5]}” [A].", f"“{TRUE}” [A]. „{TRUE}“ [A].", f"“{TRUE}” [A]. ‘bridge is 312 metres long’ [A].",
     "“It was … built in … say its … moved. The” [A]. “Nobody was harmed when” [A]."],
)  # fmt: skip
def test_a_part_of_a_quotation_is_no_second_one(text: str) -> None:
    assert not holds(text, least_quotations=2)


def test_quotations_without_blanks_between_words() -> None:
    assert holds("报告说：「北方的田地今年收获了一百二十吨小麦」[报告]。这是“好年景”。", CHINESE, least_quotations=1)
    assert not holds("报告说：「北方的田地今年收获了五百吨小麦」[报告]。", CHINESE)


INVENTED = [
    (NUMBERED, "[1] and [4]|(4)|[1] and (4)|[1], wide⁴|[1], wide.<sup>4</sup>|[1] {4}|[1] 【4】|[1–4]|[1, 9]|[1][7]|[1] ⟨7⟩|[1] ［7］"
     "|[1] [^9]|[1] (Miller 2018)|[1] (Miller & Sons, 2018)|[1], as Miller et al. (2018) show|[1]; Miller (2018) found it"
     "|[1] (see Miller, 2018, p. 4)|[1] [@miller2018]|[1] (Miller, p. 12)|(Miller 2018; 1)|[1] (Miller, in press)"),
    (LETTERS, "[A] (C)|[A], [C]|`[A]`|[A](http://evil.org)|[A] www.evil.org/a|~~[A]~~|[A] [^x]|[A] (Source: Miller 2020)"),
    (NAMED, "(Smith 2020) (Miller 2018)|(Smith 2021)|[Smith 2020; Miller 2018]|(Smith 2019, 2020)|in 2020"),
]  # fmt: skip
KNOWN = [
    (NUMBERED, "[1], [2]|[1–2]|(1)|(1, 2)|.¹|¹ and².|.<sup>1</sup>|.<sup>[1]</sup>|.<sup>1,2</sup>|[1, p. 12]|[1; 2]|^[1]"
     "|[1] since 2019 (in 2020, too)|[1] on three (3) fields of 5 m², 10³ m long|[1]: (1) here, (7) there"),
    (LETTERS, "[A, p. 12]|[see A; cf. B, pp. 3–4]|([A])|(A)|(A, p. 3; B)|【A】|[A] [emphasis added]|[A] in May (2020; May 2021)"
     f"|.[^1]\n\n[^1]: [A], p. 12.|.[^1]\n\n[^1]: A, p. 12.|.[^n]\n\n[^n]: See {ADDRESS}|, [as here]({ADDRESS})"
     "|.¹ [A]\n\n¹ As measured in spring.|[A] (founded 2001)|[A], version 2 (2020)"),
    (NAMED, "(Smith 2020)|(Smith, 2020)|(see Smith 2020, p. 4)|[Smith 2020]|[@Smith 2020]|(Smith 2020; Jones & Lee 2019)"
     "|(Jones and Lee 2019: 14)|(Smith 2020, 14–16)|, says Smith (2020)|. Smith’s (2020) bridge|(Smith 2020) in Berlin (2019)"),
]  # fmt: skip


@table(("sources", "form"), [(known, form) for known, forms in INVENTED for form in forms.split("|")])
def test_a_source_that_is_not_there_is_found_in_every_bracket(sources: tuple[CitedSource, ...], form: str) -> None:
    assert not holds(f"It is long {form}", sources)


@table(("sources", "form"), [(known, form) for known, forms in KNOWN for form in forms.split("|")])
def test_a_source_is_cited_in_every_bracket(sources: tuple[CitedSource, ...], form: str) -> None:
    assert holds(f"It is long{'' if form[0] in '.,¹' else ' '}{form}", sources)


@pytest.mark.parametrize("text", ["(Smith 2020).", "`[Smith 2020]` (Jones & Lee 2019)", "[Smith 2020], (Smith, 2020)"])
def test_one_source_is_not_two(text: str) -> None:
    assert not holds(f"It is long {text}", NAMED, least=2)


@pytest.mark.parametrize(
    "said",
    [
        "a short nap does [...] improve recall of lists", "a short nap does … improve recall of lists",
        "a short nap does [indeed] improve recall of lists", "does reduce errors. It [...] hurt children", "They did … feel better afterwards",
        "The ferry ... arrives on time", "It is [likely] that the ice will last for long",
    ],
)  # fmt: skip
def test_a_negation_is_not_left_out(said: str) -> None:
    assert not holds(f"It says “{said}” [A].", NAP)


@pytest.mark.parametrize(
    "said",
    [
        "a short nap does not improve recall [...] in adults", "it does reduce errors … It was cheap",
        "most people name … as their reason", "a short nap does not [ever] improve recall of lists",
        "It is unlikely that [all of] the ice will last for long",
    ],
)  # fmt: skip
def test_what_negates_something_else_may_be_left_out(said: str) -> None:
    assert holds(f"It says “{said}” [A].", NAP, least_quotations=1)


def test_a_part_that_a_source_has_everywhere_is_not_looked_for_without_end() -> None:
    source = same_text("it is not known what of the men said so and on " * 4_000)
    started = time.process_time()
    assert not is_verbatim("what of the men said … of the men said", [source])
    assert time.process_time() - started < 2.0
