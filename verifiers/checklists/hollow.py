"""What is there and says nothing: sections without words of their own, code that does nothing, columns without a cell.

Gaps are known by their usual words (`TBD`, `to be written`, `see above`), as claims are; a section that says its
heading again, or what another section says, is known whatever its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from verifiers.checklists.characters import plain
from verifiers.checklists.markdown import MarkdownBlock
from verifiers.checklists.prose import words

GAP = re.compile(
    r"(?:tb[adc]|to[ -]?do|n/?a|wip|xxx+|placeholder|lorem ipsum\b.*|(?:some |your |insert )?(?:text|content) here"
    r"|(?:this section )?(?:is |will be |(?:is )?(?:still )?to be )(?:written|added|done|completed|filled(?:"
    r" in)?|determined"
    r"|announced|provided|inserted|empty|left (?:blank|empty))(?: (?:later|soon|below|here|in))*|(?:to"
    r" )?follows?(?: later| soon)?"
    r"|coming soon|under construction|work in progress|(?:see|as) (?:above|below|before)|(?:wird|folgt)"
    r" (?:noch )?(?:nachgereicht"
    r"|ergänzt|später|noch)|folgt|siehe (?:oben|unten)|offen|à (?:compléter|venir|rédiger)|voir (?:ci-dessus"
    r"|ci-dessous|plus haut)"
    r"|(?:item|point|entry|bullet|element|punkt|élément|elemento) ?(?:no\. ?)?\w{0,2}"
    r"|por (?:completar|hacer|escribir|redactar)|pendiente(?: de \w+)?|(?:véase|ver) (?:más )?(?:arriba|abajo|adelante)"
    r"|(?:texto )?(?:a|por) (?:preencher|completar|escrever|definir)|(?:ver|vide) (?:acima|abaixo)|em (?:breve"
    r"|construção)"
    r"|(?:ancora )?da (?:completare|scrivere|definire|compilare|inserire|aggiungere)|vedi (?:sopra|sotto)|segue"
    r"|(?:texte |section )?à (?:remplir|définir|suivre|faire)|en (?:cours|construction|préparation)|non rédigé"
    r"|(?:muss |ist )?(?:wird )?noch (?:zu )?(?:\w+ )?(?:ergänz\w+|schreiben|geschrieben|nachgetragen|aus|offen"
    r"|ausfüllen)(?: werden)?"
    r"|(?:hier )?(?:folgt|kommt) (?:noch )?(?:der )?(?:text|inhalt)|(?:volgt|komt) (?:nog|later)"
    r"|nog (?:in te vullen|aan te"
    r" vullen|te schrijven|niet bekend)|(?:moet )?(?:nog )?(?:worden )?aangevuld(?: worden)?|zie (?:boven|hierboven"
    r"|onder|hieronder)"
    r"|do (?:uzupełnienia|napisania|zrobienia|wypełnienia|ustalenia)(?: (?:w )?(?:później\w*|terminie|wkrótce|potem"
    r"|późniejszym))*"
    r"|(?:patrz|zob|zobacz)\.? (?:wyżej|niżej|powyżej|poniżej)|wkrótce|продолжение следует|(?:будет )?(?:дополнено"
    r"|добавлено|написано)"
    r"(?: позже)?|(?:в разработке|уточняется|заполнить(?: позже)?|нужно (?:до)?написать|см\.? (?:выше|ниже))"
    r"|待补充|待定|未定"
    r"|(?:内容)?待(?:写|完善|续)|(?:请)?见上文|同上|準備中|(?:後日|後ほど)?(?:追記|記入)(?:予定|します)?"
    r"|上記参照|추후 (?:작성|보완)(?: 예정)?|준비 ?중"
    r")"
)
PARTS = frozenset(["section", "chapter", "part", "paragraph", "abschnitt", "kapitel", "chapitre", "sección", "sezione"])
ANNOUNCING = PARTS | frozenset(
    [
        "this",
        "the",
        "is",
        "are",
        "a",
        "an",
        "of",
        "for",
        "and",
        "about",
        "here",
        "our",
        "we",
        "you",
        "in",
        "it",
        "describes",
        "presents",
        "contains",
        "covers",
        "discusses",
        "explains",
        "shows",
        "gives",
        "lists",
        "treats",
        "reports",
        "dieser",
        "der",
        "die",
        "das",
        "beschreibt",
        "enthält",
        "cette",
        "le",
        "la",
        "les",
        "décrit",
        "contient",
        "esta",
        "este",
        "describe",
        "contiene",
        "questa",
        "questo",
        "descrive",
    ]
)
"""`This section describes the results`."""
SHORT_SECTION = 4
"""Words from which on two sections do not say the same by chance: `None.` may stand in several."""
NO_SIGN = re.compile(r"[\s\-\u2010-\u2015.…?_/*|]*")
COMMENT = re.compile(r"\s*(?://|#(?!\w|\[|!)|--|/\*|\*(?:\s|/|$)|<!--|;|%).*|\s*")


def section_text(blocks: Sequence[MarkdownBlock], at: int) -> str:
    """What stands in the section of the heading at this place, `plain`, be it below a heading of a lower rank."""
    said: list[str] = []
    for block in blocks[at + 1 :]:
        if block.kind == "heading":
            if block.level <= blocks[at].level:
                break
        else:
            said += [block.text, *(cell for row in block.rows[1:] for cell in row)]
    return "\n".join(plain(one) for one in said if words(one))


def is_gap(text: str, heading: str = "") -> bool:
    """Whether a section, an item or a cell has no word, only its heading again, or only what stands for a text."""
    own = own_words(text, heading)
    echo = words(plain(text)) in ([], words(plain(heading)))
    announced = own <= ANNOUNCING and not own.isdisjoint(PARTS)
    return echo or announced or GAP.fullmatch(plain(text).strip(" .…!()[]*_-:")) is not None


def own_words(text: str, heading: str) -> frozenset[str]:
    """What a section says beside its heading."""
    return frozenset(words(plain(text))) - set(words(plain(heading)))


def empty_columns(rows: Sequence[Sequence[str]]) -> Iterable[int]:
    """Columns of which no row says anything."""
    return (
        at for at in range(len(rows[0]) if rows else 0) if all(_says_nothing(row[at]) for row in rows if at < len(row))
    )


def _says_nothing(cell: str) -> bool:
    """A tick or a star says something, a dash does not."""
    return NO_SIGN.fullmatch(cell) is not None or (bool(words(cell)) and is_gap(cell))


def is_all_comment(code: str) -> bool:
    return all(COMMENT.fullmatch(line) for line in code.splitlines())
