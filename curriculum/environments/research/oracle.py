"""Answers questions about a corpus by its tools alone, which measures whether the world makes them answerable.

It parses the question into its only possible chain, searches, reads pages and extracts values from sentences as
`relations` and `yearbooks` write them. It knows the wording of the corpus, but none of its facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from curriculum.environments.research.graph import FIELDS
from curriculum.environments.research.inquiries import Inquiry, answer_of, parsed
from curriculum.environments.research.relations import COUNT, RELATIONS, YEAR, CorpusRelation
from curriculum.environments.research.yearbooks import KINDS, PERSON, PURPOSES, Account, Entry, Kind, templates

Call = Callable[[str, Mapping[str, Any]], str]
_LINK = r"\[(?P<name>[^\]\n]*)\]\((?P<page>p\d+)\)"
_NUMBER = r"(?P<number>\d[\d,]*)"
_HIT = re.compile(r"^(p\d+) \| (.*?) \| ", re.MULTILINE)


class FoundValue(NamedTuple):
    text: str
    """Number in digits, or a name."""
    page: str
    """Page of an entity; for a number, the page that states it."""


class ResearchOracle:
    """Answers questions in one world of research by its tools alone. Raises LookupError for values not found."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._read: dict[str, tuple[str, str]] = {}

    def value(self, phrase: str) -> FoundValue:
        """Finds the value that a phrase of a question describes, by searching and reading pages. Raises LookupError."""
        if (inquiry := parsed(phrase)) is not None:
            return self._inquired(*inquiry)
        for row in RELATIONS.values():
            for words, back in ((row.phrase, False), (row.only, True)):
                before, _, behind = words.partition("{x}")
                inner = phrase[len(before) : len(phrase) - len(behind)]
                if words and phrase.startswith(before) and phrase.endswith(behind) and inner.startswith("the "):
                    return self._hop(self.value(inner), row, back)
        return self._start(phrase)

    def _inquired(self, asked: Inquiry, house: str) -> FoundValue:
        name = self.value(house).text
        page = next(
            page for page, title in self._search(f"Yearbooks of the {name}") if title == f"Yearbooks of the {name}"
        )
        _, listed = self._page(page)
        entries: list[Entry] = []
        for year in range(asked.first, asked.last + 1):
            volume = re.search(rf", {year}\]\((p\d+)\)", listed)
            if volume is None:
                raise LookupError(f"no yearbook of {name} for {year}")
            entries += entries_in(self._page(volume[1])[1], year)
        answer = answer_of(asked, entries)
        if answer is None or asked.form == "total":
            return FoundValue(answer or "", page)
        return self._start(answer)

    def _start(self, phrase: str) -> FoundValue:
        found = re.fullmatch(r'the (?:book "(?P<book>.*)"|(?:town|province) (?P<place>.*)|(?P<other>.*))', phrase)
        assert found is not None
        name = found["book"] or found["place"] or found["other"]
        for page, title in self._search(name):
            person = re.fullmatch(r"(.*) \((.*)\)", title)
            if title == name or (person and name == f"{person[2]} {person[1]}"):
                return FoundValue(person[1] if person else title, page)
        raise LookupError(f"no page of {phrase}")

    def _hop(self, now: FoundValue, row: CorpusRelation, back: bool) -> FoundValue:
        own, other = (row.told_there, row.told) if back else (row.told, row.told_there)
        _, text = self._page(now.page)
        for one in own:
            for found in sentence(one, "" if back else row.value).finditer(text):
                if found["here"] in ("", now.text):
                    return _value(found, now.page)
        for page, title, text in self._around(now, other, row.listed):
            name = re.sub(r" \([^()]*\)$", "", title)
            for one in other:
                hits = sentence(one, row.value if back else "").finditer(text)
                if any(hit["page"] == now.page and hit["here"] in ("", name) for hit in hits):
                    return FoundValue(name, page)
            line = _listed(row, now.page).search(text) if row.listed and not back else None
            if line is not None:
                return _value(line, page)
        raise LookupError(f"{row.name} of {now.text}")

    def _around(self, now: FoundValue, sentences: tuple[str, ...], listed: str) -> Iterator[tuple[str, str, str]]:
        """Searches for pages that may state a fact about the entity `now`; yields each once."""
        seen = {now.page}
        for words in (*sentences, listed, ""):
            telling = re.findall(r"\b\w{4,}", re.sub("{.}", " ", words))
            for page, _ in self._search(" ".join([now.text, now.text, *telling])):
                if page not in seen:
                    seen.add(page)
                    yield (page, *self._page(page))

    def _search(self, query: str) -> list[tuple[str, str]]:
        return _HIT.findall(self._call("search", {"query": query}))

    def _page(self, page: str) -> tuple[str, str]:
        """Reads all parts of a page through the world's tools, once. Returns its title and text."""
        if page not in self._read:
            parts: list[str] = []
            count = 1
            while len(parts) < count:
                shown = self._call("read_page", {"page": page, "part": len(parts) + 1})
                head, _, text = shown.partition("\n\n")
                found = re.fullmatch(r"(.*) \(p\d+\), part \d+ of (\d+)", head)
                if found is None:
                    raise LookupError(f"{page} is not shown")
                title, count = found[1], int(found[2])
                parts.append(text.partition("\n\nLinks:\n")[0])
            self._read[page] = (title, "\n".join(parts))
        return self._read[page]


def _value(found: re.Match[str], page: str) -> FoundValue:
    number = found.groupdict().get("number")
    return FoundValue(number.replace(",", ""), page) if number else FoundValue(found["name"], found["page"])


def entries_in(text: str, year: int) -> list[Entry]:
    """Reads the entries of a yearbook back out of its sentences; people are words such as `the poet Ada Berg`."""
    found = []
    for line in re.split(r"(?<=\.) |\n+", text):
        for kind, account, matter, pattern in _entry_patterns():
            if hit := pattern.match(f"{line[:1].lower()}{line[1:]}"):
                more = hit.groupdict()
                of, what = int(more.get("y") or year), matter or more["m"]
                found.append(Entry(year, kind, account, of, more["p"], what, int(more.get("n") or 0), more.get("q")))
    return found


@cache
def _entry_patterns() -> list[tuple[Kind, Account, str, re.Pattern[str]]]:
    """Patterns of the sentences that state an entry, from their small first letter on."""
    made: list[tuple[Kind, Account, str, re.Pattern[str]]] = []
    sorts: tuple[tuple[Account, str, Sequence[str]], ...] = (
        ("gifts", "", PURPOSES), ("lectures", "", FIELDS), ("members", "in", ()), ("members", "out", ()),
    )  # fmt: skip
    for account, matter, matters in sorts:
        groups = {"p": PERSON, "q": PERSON, "m": "|".join(matters), "n": r"\d+", "y": r"\d+"}
        for kind in KINDS:
            for template in templates(kind, account, matter):
                text = re.escape(f"{template[0].lower()}{template[1:]}")
                for name, of in groups.items():
                    text = text.replace(rf"\{{{name}\}}", f"(?P<{name}>{of})")
                made.append((kind, account, matter, re.compile(text + r"\b")))
    return made


@cache
def sentence(template: str, value: str) -> re.Pattern[str]:
    """Returns a pattern that matches a sentence written from `template`. Its group `here` is the page's own name, if
    present; `value` is the kind of `{o}`."""
    number = value in (YEAR, COUNT)
    text = re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
    there = "{v}" in text or "{o}" not in text  # the value's page says it
    link, own = ("{s}", "{v}") if there else ("{o}", "{s}")
    here = r"(?P<here>[^\[\].\n]+)" if own in text else "(?P<here>)"
    parts = text.replace(link, _NUMBER if number and not there else _LINK).split(own)
    again = "(?P=here)"
    whole = parts[0] + "".join((here if at == 1 else again) + part for at, part in enumerate(parts) if at)
    if own not in text:
        whole += "(?P<here>)"
    return re.compile(r"(?:(?<=^)|(?<=[.\n] )|(?<=\n))" + whole, re.MULTILINE)


@cache
def _listed(row: CorpusRelation, subject: str) -> re.Pattern[str]:
    line = re.escape(row.listed).replace(r"\{", "{").replace(r"\}", "}")
    value = _NUMBER if row.value in (YEAR, COUNT) else _LINK
    return re.compile("^- " + line.replace("{s}", rf"\[[^\]\n]*\]\({subject}\)").replace("{o}", value), re.MULTILINE)
