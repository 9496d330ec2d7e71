"""Words that turn what is said: they are neither put into a quotation nor left out of it.

Negations of the languages that people write lists in, and verbs and conditions that deny as well (`fails to`, `without`,
`unless`). Where words are not set apart by blanks, signs of a negation are looked for within them.
"""

from __future__ import annotations

import re

ENGLISH = (
    r"not|no|never|none|nobody|nothing|nor|neither|nowhere|hardly|rarely|seldom|scarcely|barely|cannot|without|unless|if"
    r"|except|unlikely|impossible|unable|untrue|false|fail(?:s|ed|ing)?|refus(?:e|es|ed|ing)|den(?:y|ies|ied|ying)"
    r"|lack(?:s|ed|ing)?"
)
OTHERS = (
    r"nicht|kein\w*|kaum|selten|nie|niemals|niemand|nichts|weder|ohne|außer|falls|unmöglich|verweiger\w*|verhinder\w*"
    r"|pas|jamais|aucun\w*|guère|sans|sauf|ne|refus\w+|nunca|jamás|nadie|ningun\w*|ningún|tampoco|sin|ni|salvo"
    r"|non(?!-)|nessun\w*|niente|senza|né|não|nem|ninguém|nenhum\w*|sem|niet|geen|nooit|nauwelijks|zonder"
    r"|ikke|inte|ingen|inget|aldrig|aldri|utan|uden|uten|nigdy|żad\w+|bez|není|nikdy|nem|nincs|soha|ei|eivät"
    r"|tidak|bukan|jangan|tanpa|değil|yok|hiç|asla|не|нет|нельзя|никогда|никто|ничего|ни|без|едва|ні|немає"
    r"|δεν|δε|μην|ούτε|ποτέ|χωρίς|لا|لم|لن|ليس|ليست|غير|دون|نه|לא|אין|בלי|नहीं|मत|बिना"
)
UNSPACED = r"不(?!仅|僅|但|断|斷|同|过|過|久)|没|沒|未(?!来|來)|无|無|非(?!常|洲)|勿|禁止|ない|なか|なく|ません|ずに|않|없|못|ไม่|มิได้|ห้าม|ปราศจาก"
NEGATED = rf"(?:(?:{ENGLISH}|{OTHERS})\b|\w*n['’]t\b|n['’](?=\w))"
"""From the beginning of a word."""
ANY = re.compile(rf"\b{NEGATED}|{UNSPACED}", re.IGNORECASE)
CONTRAST = re.compile(r"(?<=\w), not\b[^,;:.!?]*[,;:]|\bwith no\b", re.IGNORECASE)
ENDS = re.compile(r"[.!?]\s|[。！？]")


def may_be_put_in(text: str) -> bool:
    return not ANY.search(text)


def may_be_left_out(text: str) -> bool:
    """Whether nothing is negated from where a quotation breaks off to the end of that sentence, and from the beginning
    of the one in which it goes on."""
    pieces = ENDS.split(CONTRAST.sub(" ", text))
    return not any(ANY.search(piece) for piece in (pieces[0], pieces[-1]))
