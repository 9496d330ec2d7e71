"""Signs of numbers: negative by sign, words or cell brackets, or possibly negative as a loss."""

from __future__ import annotations

import re

THIN = "\u2007"
"""Normalised blank within a number; it separates thousands."""
MONEY = r"(?:[$€£¥₹₽₩₺¢]|[A-Z]{3}|US\$)?\s?"
SIGN = re.compile(rf"([-\u2010-\u2015\u2212])([\s{THIN}]?){MONEY}$")
MINUS = re.compile(
    r"(?:(?<!\w)(?:minus|negative|mínusz?|miinus|eksi|âm|минус|мінус|μείον|ناقص|מינוס|माइनस|(?:sıfırın"
    r"|0['’]ın) altında)\s"
    rf"|(?:零下|(?<![勝胜自抱])[负負]|マイナス|氷点下|영하|마이너스|ลบ|ติดลบ)\s?){MONEY}$",
    re.IGNORECASE,
)
LESS = re.compile(
    r"(?<!\bau )(?<!\bal )(?<!\bao )(?<!\bl[eo] )(?<!\bpelo )(?<!\bo )(?<!\bou )\b(?:moins|menos|meno|min)\s$",
    re.IGNORECASE,
)
DEGREES = re.compile(r"\s?(?:°|deg|degr|grad|grau)", re.IGNORECASE)
"""Degree sign or word: `moins 7 °C` is negative, without degrees `moins` means less."""
OPENED = re.compile(rf"\(\s?{MONEY}$")
CLOSED = re.compile(r"\s?[$€£¥₹₽₩₺%]?\s?\)")
BELOW_ZERO = re.compile(
    r"\s?(?:°\s?[CF]?|degrees?|grad|degrés?|grados?|gradi|graus?|graden|градус\w*)?\s?(?:celsius|fahrenheit)?\s?"
    r"(?:below zero|unter null|(?:au-dessous|en dessous) de zéro|bajo cero|sotto (?:lo )?zero|abaixo de zero|onder nul"
    r"|ниже нуля|мороза|нижче нуля|poniżej zera|pod nulou|under nollan|under null|nulla alatt|di bawah nol)\b",
    re.IGNORECASE,
)
LOSS = re.compile(
    r"\b(?:loss(?:es)?|los(?:t|es?|ing)|deficit|shortfall|fell|fall(?:s|en|ing)?|drop(?:s|ped)?|declin\w+"
    r"|decreas\w+|down"
    r"|shrank|shrunk|sank|sunk|reduc\w+|verlust\w*|defizit|minus|gesunken|sank|fiel(?:en)?|gefallen|rückgang"
    r"|pertes?|déficit"
    r"|baiss\w+|diminu\w+|recul\w*|pérdidas?|baj(?:ó|aron|ado)|disminu\w+|perdita|disavanzo|calat\w|diminuit\w|prejuízo"
    r"|caiu|verlies|daling|убыт\w+|сниз\w+|упал\w*)\b[^.!?;\d]{0,30}$",
    re.IGNORECASE,
)
LOWER = re.compile(
    r"\s(?:[^\W\d_]+\s)?(?:lower|less|fewer|down|weniger|niedriger|de moins|menos|(?:in )?meno)\b", re.IGNORECASE
)


def is_negative(before: str, after: str, cell: bool) -> bool:
    if BELOW_ZERO.match(after) or (LESS.search(before) and DEGREES.match(after)):
        return True
    if below := MINUS.search(before):
        return not before[: below.start()].rstrip()[-1:].isdigit()
    if cell and OPENED.search(before) and CLOSED.match(after):
        return True
    if cell and re.match(r"\s?[-−–]\s*$", after):
        return True
    sign = SIGN.search(before)
    if sign is None:
        return False
    ahead = before[: sign.start()]
    if sign[2]:
        if cell and not ahead.strip():
            return True
        single = re.search(r"(?:\d|[)\]%°]|(?<!\w)\w)\s?$", ahead) is not None
        return ahead.rstrip()[-1:] in ("=", ":", "(") or (sign[1] == "−" and not single)
    if re.search(r"[\w)\]%°]$", ahead):
        return False
    # Dashes around a phrase are not a minus: `the sum –200 tonnes– was`.
    closing = re.search(rf"(?<=[\w.%)]){re.escape(sign[1])}(?=[\s,.;:)]|$)", after)
    return cell or not closing


def may_be_below_zero(before: str, after: str) -> bool:
    """True if the words around a number describe a loss or a fall."""
    return LOSS.search(before) is not None or LOWER.match(after) is not None
