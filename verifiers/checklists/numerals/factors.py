"""Suffixes that change a number's value: `k`, `bn`, `Mio.`, `万`, `× 10³`, `½`, `%`, `‰`.

A factor is a listed word, glued to the number or after one blank, and not the beginning of a longer word. A letter such
as `m` or `t` means metres or tonnes unless a currency sign precedes the number or a countable noun follows the letter;
a glued `M` is millions, a glued `B` billions after three digits; `K` after a blank is kelvin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

POWERS = {
    2: "hundred hundreds cien cento honderd hundert सौ 百 백",
    3: "k thousand thousands thsd tsd tausend mille mil mila milhar milhares mil. duizend tysiąc tysiące tysięcy tys"
    " тыс тысяч тысячи тысяча χιλιάδες tusen ribu हज़ार हजार ألف آلاف هزار ہزار 千 천",
    5: "lakh lakhs lac लाख لاکھ",
    6: "mn mln mio million millions millionen millón millones milione milioni milhão milhões miljoen miljoner mm"
    " milion miliony milionów milyon juta млн миллион миллиона миллионов εκατομμύρια दशलक्ष مليون ملايين میلیون ملین"
    " 百万 百萬 백만",
    7: "crore crores cr करोड़ کروڑ 千万 千萬 천만",
    9: "bn bln billion billions mrd mld mia milliard milliards milliarde milliarden miljard miljarder miliardo"
    " miliardi miliard miliardy miliardów milyar miliar млрд миллиард миллиарда миллиардов"
    " δισεκατομμύρια مليار مليارات میلیارد ارب",
    12: "tn trn trillion trillions billionen billones trilhões biliardo трлн триллион триллионов 兆",
}
FACTORS: dict[str, Fraction] = {word: Fraction(10**power) for power, text in POWERS.items() for word in text.split()}
FACTORS |= {"万": Fraction(10**4), "萬": Fraction(10**4), "만": Fraction(10**4), "億": Fraction(10**8)}
FACTORS |= {"亿": Fraction(10**8), "억": Fraction(10**8), "dozen": Fraction(12), "dozens": Fraction(12)}
FACTORS |= {"dutzend": Fraction(12), "docena": Fraction(12)}
PARTS_OF_ONE = ((1, "tenth"), (2, "hundredth"), (3, "thousandth"), (6, "millionth"), (9, "billionth"))
FACTORS |= {f"{name}{end}": Fraction(1, 10**power) for power, name in PARTS_OF_ONE for end in ("", "s")}
HUNDREDTHS = (
    "%;٪;percent;per cent;per-cent;pct;prozent;procent;por ciento;por cento;pour cent;per cento;percentage points"
    ";percentage point;points de pourcentage;puntos porcentuales;punti percentuali;pontos"
    " percentuais;prozentpunkte;prozentpunkten;процентов;процента;процент;yüzde;persen;パーセント;퍼센트;प्रतिशत;درصد"
)
SHARES = dict.fromkeys(HUNDREDTHS.split(";"), Fraction(1))
SHARES |= dict.fromkeys(("‰", "per mille", "permille", "per mil", "promille"), Fraction(1, 10))
SHARES |= dict.fromkeys(("‱", "basis points", "bps", "bp"), Fraction(1, 100))
SHARES |= {"ppm": Fraction(1, 10_000), "ppb": Fraction(1, 10_000_000)}
UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
ENDED = rf"(?:(?<=[{UNSPACED}])|(?![^\W{UNSPACED}]))"
"""End of a word. In scripts without blanks the next word may follow directly: `85%가`."""


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name).replace(r"\ ", r"\s") for name in sorted(names, key=len, reverse=True))


FACTOR = re.compile(rf"[\s-]?({_any_of(FACTORS)}){ENDED}\.?", re.IGNORECASE)
LETTER = re.compile(r"\s?([MBTmbt])(?!\w)")
"""Millions, billions, trillions; or metres, tonnes, a part of a figure or a molar solution."""
MEASURES = (
    r"tonnes|tons|kg|kilos|people|persons|users|customers|inhabitants|readers|visitors|households|jobs|workers|copies"
    r"|dollars|euros|pounds|francs|yen|rupees|roubles|usd|eur|gbp|chf|barrels|litres|liters|gallons|bushels|years|cars"
    r"|homes|views|downloads|followers|subscribers|times|units|doses|cases|voters|votes|shares|trees|hectares|acres"
    r"|parameters|tokens|€|\$|£"
)
MEASURE = re.compile(rf"\s?(?:{MEASURES})(?!\w)", re.IGNORECASE)
CURRENCY = re.compile(r"(?:[$€£¥₹₽₩₺¢]|\b(?:USD|EUR|GBP|CHF|JPY|CNY|CAD|AUD|INR|Rs|R|kr)\.?)\s?[-−–]?$")
SHARE = re.compile(rf"[\s-]?({_any_of(SHARES)}){ENDED}", re.IGNORECASE)
TEN_TO = re.compile(r"\s?[x×·*⋅]\s?10(?:\s?\^\s?\(?\s?([-−–+]?\d{1,3})\)?|\*\*([-+]?\d{1,3}))(?!\d)", re.IGNORECASE)
E_NOTATION = re.compile(r"[eE]([-+−]?\d{1,3})(?!\w)")
PART = re.compile(r"(?:\s|\sand\s)?(\d{1,3})⁄(\d{1,3})|\s(?:and\s)?(\d)/(\d{1,2})(?![\d/])")
HALF = re.compile(
    r"(?:\s|-)(?:and(?:\s|-)a(?:\s|-)(half|third|quarter)|et demie?s?|y medi[oa]|e mezz[oa]|e mei[oa]"
    r"|en een hal(?:f|ve)"
    r"|und ein(?:e|en|er)? halb\w*)(?!\w)",
    re.IGNORECASE,
)
CLOCK = re.compile(r"\b(?:las|la|às|as|le|alle|dalle)\s$", re.IGNORECASE)
"""Precedes an hour: `las tres y media` is a time."""
SHARE_BEFORE = re.compile(r"(?:(?<![^\s(])%|(?<!\w)(?:yüzde|asilimia|ehuneko)\s|百分之)\s?$", re.IGNORECASE)
PARTS = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}
RAISED = re.compile(r"\^\(?-?\d+\)?|\*\*\d+|_\d+|\s(?:squared|cubed)(?!\w)", re.IGNORECASE)
"""Marks a power, or names the base of a number."""
LETTERS = {"m": 6, "b": 9, "t": 12}


class Tail:
    """Factor, added fraction, share and power that the text behind a number gives it: `million`, `and a half`,
    `percent`."""

    def __init__(self, text: str, start: int, before: str, digits: int) -> None:
        self.factor = Fraction(1)
        self.added = Fraction(0)
        self.share: Fraction | None = None
        self.raised = False
        self._text, self.end = text, start
        if part := PART.match(text, start):
            upper, lower = (int(part[1] or part[3]), int(part[2] or part[4]))
            if lower:
                self.added = Fraction(upper, lower)
                self.end = part.end()
        if power := E_NOTATION.match(text, self.end):
            self._take(power.end(), Fraction(10) ** int(power[1].replace("−", "-")))
        if (half := HALF.match(text, self.end)) and not CLOCK.search(before):
            self.added += PARTS[(half[1] or "half").lower()]
            self.end = half.end()
        if power := TEN_TO.match(text, self.end):
            exponent = int(re.sub("[−–]", "-", power[1] or power[2]))
            self._take(power.end(), Fraction(10) ** exponent)
        money = CURRENCY.search(before) is not None
        while self._factor(money, digits):
            pass
        self.points = False
        if share := SHARE.match(text, self.end):
            self.share = SHARES[re.sub(r"\s", " ", share[1].lower())]
            self.points = "point" in share[1].lower() or "punkt" in share[1].lower()
            self.end = share.end()
        elif SHARE_BEFORE.search(before) and not text[self.end : self.end + 1].isalpha():
            self.share = Fraction(1)
        if raised := RAISED.match(text, self.end):
            self.raised, self.end = True, raised.end()

    def _take(self, end: int, factor: Fraction) -> None:
        self.factor, self.end = self.factor * factor, end

    def _factor(self, money: bool, digits: int) -> bool:
        if found := FACTOR.match(self._text, self.end):
            word = found[1].lower()
            if not (found[1] == "K" and found.group()[0] != "K") and (word != "mm" or money):
                self._take(found.end(), FACTORS[word])
                return True
        if found := LETTER.match(self._text, self.end):
            glued = found.group()[0] == found[1]
            counted = MEASURE.match(self._text, found.end()) is not None
            if money or counted or (glued and (found[1] == "M" or (found[1] == "B" and digits > 2))):
                self._take(found.end(), Fraction(10 ** LETTERS[found[1].lower()]))
                return True
        return False
