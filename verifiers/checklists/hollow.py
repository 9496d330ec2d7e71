"""Detects empty content: sections without words of their own, code that does nothing, empty columns.

Placeholders are recognised by their usual words, see `GAPS`; a section that only repeats its heading or another section
is recognised in any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from verifiers.checklists.markdown import MarkdownBlock
from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.prose import words

GAPS = {
    "any": r"tb[adc]|to[ -]?do|n/?a|wip|xxx+|placeholder|lorem ipsum\b.*",
    "en": r"(?:some |your |insert )?(?:text|content) here|(?:this section )?(?:is |will be |(?:is )?(?:still )?to be )"
    r"(?:written|added|done|completed|filled(?: in)?|determined|announced|provided|inserted|empty|left (?:blank|empty))"
    r"(?: (?:later|soon|below|here|in))*|(?:to )?follows?|coming soon|under construction|work in progress"
    r"|(?:see|as) (?:above|below|before)|(?:item|point|entry|bullet|element) ?(?:no\. ?)?\w{0,2}",
    "de": r"(?:wird|folgt|kommt) (?:noch )?(?:nachgereicht|ergänzt|später|noch)|(?:hier )?folgt(?: noch)?(?: der)?(?:"
    r" text| inhalt)?|siehe (?:oben|unten)|offen|(?:(?:muss|wird|ist) )?noch (?:zu )?(?:\w+ )?(?:ergänzen|schreiben"
    r"|ergänzt|geschrieben|nachgetragen|ausfüllen|offen)(?: werden)?|punkt ?\w{0,2}",
    "fr": r"à (?:compléter|venir|rédiger|remplir|définir|suivre)|voir (?:ci-dessus|ci-dessous|plus haut|plus bas)"
    r"|en (?:cours de (?:rédaction|préparation)|construction)|élément ?\w{0,2}",
    "es": r"por (?:completar|hacer|escribir|redactar|determinar|definir)|pendiente(?: de \w+)?"
    r"|(?:véase|ver) (?:más )?(?:arriba|abajo|adelante)|en construcción|elemento ?\w{0,2}",
    "it": r"(?:ancora )?da (?:completare|scrivere|definire|compilare|inserire)|(?:vedi|si veda) (?:sopra|sotto)"
    r"|segue|in costruzione",
    "pt": r"(?:a|por) (?:preencher|completar|escrever|definir)|(?:ver|vide) (?:acima|abaixo)|em (?:breve|construção)",
    "nl": r"(?:volgt|komt) (?:nog|later)|nog (?:in te vullen|aan te vullen|te schrijven)|zie (?:hier)?(?:boven|onder)"
    r"|(?:(?:moet|wordt) )?(?:nog )?(?:worden )?aangevuld(?: worden)?",
    "pl": r"do (?:uzupełnienia|napisania|zrobienia|wypełnienia|ustalenia)|(?:patrz|zob\.|zobacz) (?:po)?(?:wyżej|niżej)"
    r"|wkrótce",
    "ru": r"продолжение следует|(?:будет )?(?:дополнено|добавлено|написано)|заполнить|нужно написать"
    r"|см\.? (?:выше|ниже)",
    "zh": r"待补充|待定|未定|(?:内容)?待(?:写|完善|续)|(?:请)?见上文|同上",
    "ja": r"準備中|(?:後日|後ほど)?(?:追記|記入)(?:予定|します)?|上記参照",
    "ko": r"추후 (?:작성|보완)(?: 예정)?|준비 ?중",
}
GAP = re.compile("|".join(GAPS.values()))
AROUND = re.compile(
    r"^(?:section|texte?|texto|testo|tekst|sección|seção|sezione|sekcja) |,? (?:later|soon|plus tard|bientôt|más tarde"
    r"|mais tarde|più tardi|später|binnenkort|później|w późniejszym terminie|позже)$"
)
"""Words allowed around a placeholder."""


def is_gap_mark(said: str) -> bool:
    """True if a normalised text is nothing but a placeholder, such as `to be written`."""
    said = said.strip(" .…!()[]*_-:")
    return any(GAP.fullmatch(one) for one in (said, AROUND.sub("", said)))


PARTS = frozenset(["section", "chapter", "part", "paragraph", "abschnitt", "kapitel", "chapitre", "sección", "sezione"])
ANNOUNCING = PARTS.union(
    re.findall(
        r"\w+",
        "this the is are a an of for and about here our we you in it describes presents contains covers discusses"
        " explains shows gives lists treats reports dieser der die das beschreibt enthält cette le la les décrit"
        " contient esta este describe contiene questa questo descrive",
    )
)
"""Words of an announcement: `This section describes the results`."""
SHORT_SECTION = 4
"""Words from which two sections do not repeat each other by chance: `None.` may stand in several."""
NO_SIGN = re.compile(r"[\s\-\u2010-\u2015.…?_/*|]*")
COMMENT = re.compile(r"\s*(?://|#(?!\w|\[|!)|--|/\*|\*(?:\s|/|$)|<!--|;|%).*|\s*")


def section_text(blocks: Sequence[MarkdownBlock], at: int) -> str:
    """Returns the normalised text of the section under heading number `at`, subsections included."""
    said: list[str] = []
    for block in blocks[at + 1 :]:
        if block.kind == "heading":
            if block.level <= blocks[at].level:
                break
        else:
            said += [block.text, *(cell for row in block.rows[1:] for cell in row)]
    return "\n".join(plain(one) for one in said if words(one))


def is_gap(text: str, heading: str = "") -> bool:
    """True if the content of a section, item or cell is empty, repeats its heading, or is a placeholder."""
    own = own_words(text, heading)
    echo = words(plain(text)) in ([], words(plain(heading)))
    announced = own <= ANNOUNCING and not own.isdisjoint(PARTS)
    return echo or announced or is_gap_mark(plain(text))


def own_words(text: str, heading: str) -> frozenset[str]:
    """Returns the words of a section that do not occur in its heading."""
    return frozenset(words(plain(text))) - set(words(plain(heading)))


def empty_columns(rows: Sequence[Sequence[str]]) -> Iterable[int]:
    """Returns the indices of the columns of a table in which no row has content."""
    return (
        at for at in range(len(rows[0]) if rows else 0) if all(_says_nothing(row[at]) for row in rows if at < len(row))
    )


def _says_nothing(cell: str) -> bool:
    """True for a table cell without content: empty, a dash or a placeholder. A tick or a star is content."""
    return NO_SIGN.fullmatch(cell) is not None or (bool(words(cell)) and is_gap(cell))


def is_all_comment(code: str) -> bool:
    return all(COMMENT.fullmatch(line) for line in code.splitlines())
