"""Sentences in which a text speaks about itself or to its grader. They are ignored, not penalised.

Recognised by their usual words, in both orders ("all items are met", "it meets all items", "give this answer full
marks"). A claim in other words counts as an ordinary sentence.

Negating words, which may neither be inserted into a quotation nor omitted from it.

Covers negations of the common languages, and verbs and conditions that deny as well (`fails to`, `without`, `unless`).
In scripts without blanks, negating characters are searched within words.
"""

from __future__ import annotations

import re

from verifiers.checklists.words.characters import is_bounded, plain
from verifiers.checklists.words.prose import sentences, words

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
    """Removes the sentences in which a text praises or describes itself, or addresses its grader. A following sentence
    such as `It covers ...` is removed, too."""
    if not is_claim(text):
        return text
    kept, behind = [], False
    for sentence in sentences(text):
        behind = is_claim(sentence) or (behind and GOES_ON.match(plain(sentence)) is not None)
        if not behind:
            kept.append(sentence)
    return " ".join(kept)


NEGATIONS = (
    r"not|no|never|none|nobody|nothing|nor|neither|nowhere|hardly|rarely|seldom|scarcely|barely|cannot|unlikely"
    r"|impossible|unable|untrue|false|fail(?:s|ed|ing)?|refus(?:e|es|ed|ing)|den(?:y|ies|ied|ying)|doubt(?:s|ed|ing)?"
    r"|nicht|kein\w*|kaum|selten|nie|niemals|niemand|nichts|weder|unmöglich|verweiger\w*|verhinder\w*|pas|jamais"
    r"|aucun\w*|guère|ne|refus\w+|nunca|jamás|nadie|ningun\w*|ningún|tampoco|ni|non(?!-)|nessun\w*|niente|né|não|nem"
    r"|ninguém|nenhum\w*|niet|geen|nooit|nauwelijks|ikke|inte|ingen|inget|aldrig|aldri|nigdy|żad\w+|není|nikdy|nincs"
    r"|soha|ei|eivät|tidak|bukan|jangan|değil|yok|hiç|asla|не|нет|нельзя|никогда|никто|ничего|ни|едва|ні|немає"
    r"|myth|misconception|rumou?rs?|falsely|wrongly|Mythos|Gerüchte?|falsch\w*|unwahr\w*|mythe|rumeurs?|mito|bulo|diceria"
    r"|anything but|far from|alles andere als|weit (?:davon )?entfernt|alles behalve|allesbehalve|ver(?:re)? van"
    r"|mitnichten"
    r"|tout sauf|loin d\w*|tutt['’]altro che|lungi da\w*|lontan\w da\w*|todo menos|lejos de\w*|tudo menos|longe d\w+"
    r"|långt ifrån|allt annat än|langt fra|alt andet end|alt annet enn|wszystko,? tylko|dalek\w+ od|zdaleka|vš\w+ jen"
    r"|korántsem|minden,? csak|далек\w* от|далёк\w* от|отнюдь|jauh dari|κάθε άλλο|μακριά από"
    r"|δεν|δε|μην|ούτε|ποτέ|لا|لم|لن|ليس|ليست|غير|نه|לא|אין|नहीं|मत"
)
CONDITIONS = (
    r"without|unless|if|except|lack(?:s|ed|ing)?|ohne|außer|falls|sans|sauf|sin|salvo|senza|sem|zonder|utan|uden|uten"
    r"|bez|tanpa|без|χωρίς|دون|בלי|बिना"
)
CONTRACTED = r"\w*n['’]t\b|n['’](?=\w)"
UNSPACED = (
    r"不(?!仅|僅|但|断|斷|同|过|過|久)|没|沒|未(?!来|來)|无|無|非(?!常|洲)|勿|禁止|ない|なか|なく|ません|ずに|않|없|못"
    r"|ไม่|มิได้|ห้าม|ปราศจาก"
)
NEGATED = re.compile(rf"\b(?:(?:{NEGATIONS})\b|{CONTRACTED})|{UNSPACED}", re.IGNORECASE)
TURNING = re.compile(rf"\b(?:(?:{NEGATIONS}|{CONDITIONS})\b|{CONTRACTED})|{UNSPACED}", re.IGNORECASE)
DENIED = re.compile(
    r"\b(?:reject|disput|contradict|contrar|refut|oppos|myth|against|rather than|instead|question|whether|far from|stop"
    r"|bann?|forb|prohibit|rule[sd]? out|free of|spared?|bestreit|bestritt|bezweifel|vernein|dementier|gegen|statt|ob\b"
    r"|dout|démen|contest|contre\b|niega|negó|duda|contra\b|nega|dubit|contro\b|отриц|сомнева|опроверг)|否认|否認|怀疑|反对|否定",
    re.IGNORECASE,
)
"""Words by which a sentence denies what it quotes, besides negations."""
CONTRAST = re.compile(r"(?<=\w), not\b[^,;:.!?]*[,;:]|\bwith no\b", re.IGNORECASE)
ENDS = re.compile(r"[.!?]\s|[。！？]")
CLAUSES = re.compile(
    r"[.!?;:,()\"«»“”„]|\s[-\u2013\u2014]\s|[。！？，；：、「」]|\b(?:and|but|or|so|because|when|while|although|though|since"
    r"|where|as|than"
    r"|who|which|und|aber|oder|sondern|weil|wenn|als|während|obwohl|et|mais|ou|car|quand|y|pero|o|porque|cuando|e"
    r"|ma|perché"
    r"|quando|mas|и|но|а|или|потому|когда)\b",
    re.IGNORECASE,
)
NO_NEGATION = re.compile(
    r"\b(?:(?:not|nicht|pas|no|non|não|не) (?:only|just|merely|until|nur|erst|seulement|sólo|solo|só|только)"
    r"|no (?:fewer|less|more|later|sooner|doubt)|without doubt)\b",
    re.IGNORECASE,
)
CLAUSE = 200
THAT = frozenset(
    ["that", "dass", "daß", "que", "qu", "che", "что", "чтобы", "dat", "att", "że", "hogy", "ότι", "bahwa"]
)
HOLDS_ANYWAY = re.compile(
    r"surpris|wonder|forget|forgot|strange|coinciden|secret|acciden|odd\b|ignor|überrasch|vergess|verwunder|zufall|geheim"
    r"|étonn|surpren|oubli|hasard|olvid|sorprend|extrañ|casualidad|dimentic|stupi|удивительн|забы|случайн",
    re.IGNORECASE,
)
"""Words whose negation leaves the statement true: `it is not surprising that ...`."""
ONLY = re.compile(r"ne|n['’]", re.IGNORECASE)
"""Negation that means `only` before `que` if there is no other: `il ne reste que trois arbres`."""
THAT_FOLLOWS = re.compile(rf",(?=\s(?:{'|'.join(sorted(THAT))})\b)", re.IGNORECASE)
"""Comma before `that`, which begins no clause of its own here (`Wir glauben nicht, dass`)."""


def may_be_put_in(text: str) -> bool:
    return not TURNING.search(text)


def may_be_left_out(text: str) -> bool:
    """True if leaving out `text` from the middle of a quotation hides no negation. Checks from the break to the end of
    that sentence, and from the beginning of the sentence where the quotation resumes. In another sentence it must
    resume with a clause, so that nothing gets a new subject."""
    pieces = ENDS.split(CONTRAST.sub(" ", text))
    if len(pieces) > 1 and re.search(r"\w", CLAUSES.split(pieces[-1])[-1]):
        return False
    return not any(TURNING.search(piece) for piece in (pieces[0], pieces[-1]))


def is_negated(source: str, start: int, end: int) -> bool:
    """True if a source negates its part from `start` to `end`: right before or after it, or by `not ... that`."""
    before = THAT_FOLLOWS.sub(" ", source[max(0, start - CLAUSE) : start])
    clause = NO_NEGATION.sub(" ", CLAUSES.split(before)[-1])
    behind = source[end : end + 20]
    if NEGATED.match(behind[1:] if behind[:1] == " " else behind):
        return True
    negations = list(NEGATED.finditer(clause))
    if not negations:
        return False
    between = words(clause[negations[-1].end() :].casefold())
    near = not between or (len(between) <= 2 and not any(is_bounded(word[0]) for word in between))
    only = ONLY.fullmatch(negations[-1].group()) is not None
    governed = not THAT.isdisjoint(between) and not only and not HOLDS_ANYWAY.search(clause)
    return near or governed


def denies(sentence: str) -> bool:
    """True if a sentence denies or questions what it quotes."""
    return TURNING.search(sentence) is not None or DENIED.search(sentence) is not None or "?" in sentence
