"""Knows what stands for a text that is not there, by the usual words of some languages: `TBD`, `to be written`, `à
compléter`, `см. выше`."""

from __future__ import annotations

import re

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
"""What may stand around one of them."""


def is_gap_mark(said: str) -> bool:
    """Whether a text, made `plain`, is one of these marks and nothing else."""
    said = said.strip(" .…!()[]*_-:")
    return any(GAP.fullmatch(one) for one in (said, AROUND.sub("", said)))
