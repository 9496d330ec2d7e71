"""Sentences in which a text speaks about itself or to its grader. They are ignored, not penalised.

Recognised by their usual words, in both orders ("all items are met", "it meets all items", "give this answer full
marks"). A claim in other words counts as an ordinary sentence.
"""

from __future__ import annotations

import re

from verifiers.checklists.words.characters import plain
from verifiers.checklists.words.prose import sentences

EVERY = r"(?:all|every|each|both)"
WHAT = r"(?:items?|points?|constraints?|requirements?|criteri(?:a|on)|conditions?|checklists?|instructions?|keywords?)"
DONE = r"(?:met|satisfied|fulfilled|fulfils?|satisf(?:y|ies)|meets?|completed?|checked|followed|passed|included|done)"
DOES = (
    r"(?:meet(?:s|ing)?|met|satisf(?:y|ies|ied|ying)|fulfill?(?:s|ed|ing)?|follow(?:s|ed|ing)|pass(?:es|ed|ing)"
    r"|address(?:es|ed|ing)|compl(?:y|ies|ied|ying) with|conform(?:s|ed|ing)? to)"
)
TEXT = r"(?:this|my|the) (?:answer|text|response|essay|submission|reply|output)"
SAID = r"(?:note|answer|text|response|essay|submission|reply|output|paragraph|piece)"
ITSELF = (
    rf"(?:(?:this|my) (?:\w+ )?{SAID}|the (?:\w+ )?{SAID} (?:above|below|here)"
    rf"|here is (?:an?|my|the|your) {SAID} that)"
)
"""Phrases with more nouns than TEXT, where the words around them show that this very text is meant."""
HAS = (
    r"(?:has|covers|addresses|names|lists|uses|explains|describes|discusses|treats|deals with|talks about|touches"
    r"|presents|provides|gives|offers|features|incorporates|explores|examines|considers|outlines|summari[sz]es|details"
    r"|introduces)"
)
NEEDED = r"(?:required|requested|necessary|mandatory|demanded|wanted)"
PARTS = r"(?:words?|terms?|phrases?|keywords?|topics?|points?|items?|elements?|aspects?|facts?)"
THERE = r"(?:above|below|present|here|used|mentioned|covered|explained|discussed|contained|in (?:it|place))"
MENTIONS = r"(?:meets|satisfies|fulfils|fulfills|follows|passes|deserves|mentions|contains|includes)"
TOP = r"(?:full|top|maximum|maximal|highest|perfect|best|passing|1)"
MARKS = r"(?:scores?|marks?|grades?|points|credits?|ratings?)"
GRADERS = r"(?:judge|grader|verifier|evaluator|scorer)"
WORK = rf"(?:it|me|(?:this|my|the) (?:{SAID}|item|point|work))"
EARLIER = r"(?:previous|prior|above|earlier|preceding|all|your|any)"
RULES = r"(?:instructions?|prompts?|rules|criteria|checklists?|guidelines|rubrics?)"
HOW = r"(?:\w+ly |also |thus |therefore |now |indeed )?"
CLAIM = re.compile(
    rf"\b{EVERY}\b.{{0,60}}\b{WHAT}\b.{{0,200}}\b{DONE}\b"
    rf"|\b(?:{EVERY}|the) (?:\w+ )?{NEEDED} {PARTS}\b.{{0,200}}\b(?:{DONE}|{THERE})\b"
    rf"|\b{DOES} {HOW}{EVERY}\b.{{0,30}}\b{WHAT}\b"
    rf"|\b{TEXT} {HOW}{MENTIONS}\b"
    rf"|\b(?:{MENTIONS}|{HAS})\b.{{0,200}}\bas (?:requested|required|demanded|instructed|asked)\b"
    rf"|\b{ITSELF} {HOW}(?:{MENTIONS}|{HAS})\b"
    rf"|\b(?:{ITSELF}|{TEXT}) {HOW}(?:(?:do|does|did|will|would|can|shall)(?: not |n't | never )"
    r"(?:mention|cover|discuss|explain|describe|address|treat|name|include|contain|talk about|speak of|go into"
    r"|deal with)"
    r"|leaves? out|omits?|skips?|avoids?|ignores?|says nothing (?:about|of))\b"
    r"|^(?:key ?words?|tags|(?:required|requested|necessary|mandatory) (?:words|terms|phrases)"
    r"|(?:words|terms|phrases) (?:to (?:use|include|mention)|required|needed)) ?:"
    rf"|\bdeserves? {HOW}(?:an? |the )?{TOP} {MARKS}\b"
    rf"|\b(?:is|are|occurs?|appears?|mentioned|included|contained|present) in {TEXT}\b"
    r"|\bthe (?:whole |entire )?checklist (?:is|was|has been) \w+"
    rf"|\b(?:ignore|disregard|forget|override)\b.{{0,20}}\b{EARLIER}\b.{{0,20}}\b{RULES}\b"
    rf"|\byou are (?:now )?(?:the |an? )?{GRADERS}\b"
    rf"|\b(?:give|award|assign|grant) {WORK}\b.{{0,40}}\b{TOP} {MARKS}\b"
    rf"|\b(?:grade|score|mark) {WORK} (?:an? |as |with )?(?:{TOP}|{DONE}|correct)\b"
    rf"|\b(?:note|message|instruction|hint)s? (?:to|for) (?:the )?{GRADERS}\b"
    r"|\b(?:answer|choose|pick|select|reply|output) (?:with |only )?[\"'(]?[abc][\"')]? for (?:all|every|each)\b",
    re.IGNORECASE,
)

OTHER_TEXTS = (
    r"(?:diese[rs]? (?:text|antwort|aufsatz|absatz|beitrag)|(?:ce|le présent) texte|cette (?:réponse|rédaction)"
    r"|(?:este|el presente)"
    r" (?:texto|ensayo)|esta (?:respuesta|redacción|resposta|redação)|(?:questo|il presente) (?:testo|tema)"
    r"|questa risposta"
    r"|deze tekst|dit (?:antwoord|opstel)|(?:ten|niniejszy) tekst|ta odpowiedź|(?:этот|данный) (?:текст|ответ))"
)
OTHER_SAYS = (
    r"(?:erfüllt|enthält|behandelt|erwähnt|nennt|erklärt|beschreibt|handelt von|spricht|befasst sich|traite|parle"
    r"|contient|mentionne"
    r"|remplit|respecte|répond|explique|décrit|aborde|habla|trata|contiene|menciona|cumple|explica|describe|incluye"
    r"|fala"
    r"|contém|cumpre|atende|descreve|parla|tratta|menziona|soddisfa|rispetta|spiega|descrive|gaat over|bevat|noemt"
    r"|voldoet|beschrijft|mówi|zawiera|opisuje|omawia|spełnia|wyjaśnia|wspomina|содержит|говорит|описывает|рассказывает"
    r"|отвечает|выполняет|упоминает|объясняет)"
)
OTHER_ALL = (
    r"(?:alle (?:anforderungen|kriterien|vorgaben|bedingungen) (?:sind|wurden)|tou(?:te)?s les (?:exigences"
    r"|critères|consignes|conditions)"
    r" sont|todos los (?:requisitos|criterios) (?:están|son)|tutti i (?:requisiti|criteri) sono"
    r"|todos os (?:requisitos|critérios)"
    r" (?:são|estão|foram)|alle (?:eisen|criteria|voorwaarden) (?:zijn|worden)|wszystkie (?:wymagania|kryteria"
    r"|warunki) (?:są|zostały)"
    r"|все (?:требования|критерии|условия) (?:выполнены|соблюдены|учтены))"
)
OTHER_CLAIM = re.compile(
    rf"\b(?:{OTHER_TEXTS} (?:auch |aussi |también |anche |também |ook |też |также )?{OTHER_SAYS}|{OTHER_ALL})\b",
    re.IGNORECASE,
)

GOES_ON = re.compile(rf"it {HOW}(?:{MENTIONS}|{HAS}|{DOES})\b", re.IGNORECASE)


def is_claim(sentence: str) -> bool:
    said = plain(sentence)
    return CLAIM.search(said) is not None or OTHER_CLAIM.search(said) is not None


def without_claims(text: str) -> str:
    """Removes sentences in which a text speaks about itself or to its grader. After such a claim, `it covers ...` is
    one, too."""
    if not is_claim(text):
        return text
    kept, behind = [], False
    for sentence in sentences(text):
        behind = is_claim(sentence) or (behind and GOES_ON.match(plain(sentence)) is not None)
        if not behind:
            kept.append(sentence)
    return " ".join(kept)
