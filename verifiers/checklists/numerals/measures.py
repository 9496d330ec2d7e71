"""Recognises the unit or currency of a number, if it is a common one.

Two numbers differ in their unit only if both have a recognised one: a missing or unlisted unit contradicts nothing.
Areas and volumes count as their length, because `km²` and `square kilometres` are written in many ways.

Signs of numbers: negative by sign, words or cell brackets, or possibly negative as a loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from verifiers.answers.grammar.numerals import THIN
from verifiers.checklists.numerals.factors import ENDED

SPELLED = {
    "km": "km kilometre kilometres kilometer kilometers kilometern kilomètre kilomètres kilómetro kilómetros 公里 千米"
    " chilometro chilometri quilómetro quilómetros км",
    "m": "m metre metres meter meters metern mètre mètres metro metros metri метр метра метров 米",
    "cm": "cm centimetre centimetres centimeter centimeters zentimeter centimètres centímetros centimetri см"
    " сантиметр сантиметров 厘米",
    "mile": "mi mile miles meile meilen milles millas miglia миля мили миль",
    "nautical mile": "nmi seemeile seemeilen",
    "foot": "ft foot feet",
    "kg": "kg kilo kilos kilogram kilograms kilogramm kilogrammes kilogramme kilogramos chilogrammi кг"
    " килограмм килограмма килограммов 公斤 千克",
    "g": "g gram grams gramm gramme grammes gramos grammi г грамм грамма граммов 克",
    "mg": "mg milligram milligrams milligramm milligrammes miligramos milligrammi",
    "kilotonne": "kt kilotonne kilotonnes kilotons",
    "megatonne": "megatonne megatonnes megatons",
    "light year": "light-year light-years lightyears lichtjahr lichtjahre lichtjahren",
    "mm": "mm мм 毫米 millimetre millimetres millimeter millimeters millimetern",
    "ounce": "oz ounce ounces",
    "pound": "lb lbs",
    "tonne": "tonne tonnes ton tons tonnen toneladas tonnellate тонна тонны тонн 吨",
    "millisecond": "ms millisecond milliseconds millisekunden",
    "second": "sec secs second seconds sekunde sekunden seconde secondes segundo segundos сек секунда секунды"
    " секунд 秒",
    "minute": "min mins minute minutes minuten minutos minuti мин минута минуты минут 分钟",
    "hour": "h hr hrs hour hours stunde stunden heure heures horas час часа часов 小时 時間",
    "day": "day days tage tagen jour jours día días giorno giorni день дня дней den dny dní dnů dzień dni",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane неделя недели недель",
    "month": "month months monat monate monaten mois mes meses mese mesi месяц месяца месяцев 个月",
    "year": "year years yr yrs jahr jahre jahren ans année années año años anno anni год года лет",
    "decade": "decade decades",
    "century": "century centuries",
    "hectare": "ha hectare hectares hektar",
    "acre": "acre acres",
    "millilitre": "ml millilitre millilitres milliliter milliliters",
    "litre": "litre litres liter liters litern litros litri л литр литра литров",
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "dollar": "$ us$ usd dollar dollars dólares dollari доллар доллара долларов 美元",
    "canadian dollar": "c$ ca$ cad",
    "australian dollar": "a$ au$ aud",
    "euro": "€ eur euro euros евро 欧元",
    "cent": "¢ cent cents",
    "sterling": "£ gbp",
    "penny": "penny pence",
    "yen": "¥ jpy yen 日元 円",
    "yuan": "cny rmb yuan 元 人民币",
    "rupee": "₹ inr rupee rupees",
    "franc": "chf franken francs",
    "rouble": "₽ rub rouble roubles ruble rubles руб рубль рубля рублей",
    "złoty": "zł pln zloty złoty złotych",
    "crown": "kr sek nok dkk krona kronor kroner",
    "won": "₩ krw won 원",
    "real": "r$ brl reais",
    "peso": "mxn peso pesos",
    "speed in km": "km/h kmh kph stundenkilometer км/ч",
    "speed in miles": "mph",
    "speed in m": "m/s м/с",
    "knot": "kn knot knots knoten",
}
UNIT_OF = {word: unit for unit, words in SPELLED.items() for word in words.split()}
PREFIXES = {"": "", "k": "kilo", "M": "mega", "G": "giga", "T": "tera", "m": "milli", "µ": "micro"}
PREFIXES |= {"n": "nano", "h": "hecto"}
BASES = {
    "W": "watt watts",
    "Wh": "watt-hour watt-hours wattstunden",
    "V": "volt volts",
    "A": "ampere amperes ampère ampères",
    "Hz": "hertz",
    "B": "byte bytes octets",
    "bit": "bit bits",
    "J": "joule joules",
    "cal": "calorie calories kalorien",
    "Pa": "pascal pascals",
    "N": "newton newtons",
    "eV": "electronvolt electronvolts",
    "Ω": "ohm ohms",
    "mol": "mole moles",
    "bar": "bars",
    "Gy": "gray",
    "Sv": "sievert",
}
SYMBOLS = {f"{prefix}{base}" for prefix in PREFIXES for base in BASES} | {"KB", "Kb", "Mb", "Gb", "kb"}
"""Case-sensitive unit symbols: `MW` is not `mW`."""
UNIT_OF |= {
    f"{long}{name}": f"{prefix}{base}"
    for prefix, long in PREFIXES.items()
    for base, names in BASES.items()
    for name in names.split()
    if name != base
}


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(names, key=len, reverse=True))


AFTER = re.compile(
    rf"[\s-]?(?:(?:square|cubic|sq\.?|cu\.?|degrees?|full|whole|long|short|more|further)\s)?({_any_of(UNIT_OF)}){ENDED}",
    re.IGNORECASE,
)
NAUTICAL = re.compile(
    r"[\s-]?(?:nautical miles?|milles? (?:marins?|nautiques?)|millas? náuticas?|miglia? (?:marine?|nautiche?))\b", re.I
)
SECONDS = re.compile(r"[ \u00a0\u202f\u2007]s(?![\w'’])")
SYMBOL = re.compile(rf"[\s-]?({_any_of(SYMBOLS)}){ENDED}")
HOURLY = re.compile(
    r"\s?(?:/\s?h(?:our|r)?|per hour|an hour|pro stunde|in der stunde|par heure|à l['’]heure|por hora"
    r"|all['’]ora|в час)(?!\w)",
    re.IGNORECASE,
)
EACH_SECOND = re.compile(
    r"\s?(?:/\s?s(?:ec)?|per second|a second|pro sekunde|in der sekunde|par seconde|por segundo|al secondo|в"
    r" секунду)(?!\w)",
    re.IGNORECASE,
)
SPEEDS = {"km": (HOURLY, "speed in km"), "mile": (HOURLY, "speed in miles"), "m": (EACH_SECOND, "speed in m")}
BEFORE = re.compile(
    r"((?:(?:US|CA|C|AU|A|R)?[$])|[€£¥₹₽₩]|\b(?:USD|EUR|GBP|JPY|INR|CHF|CAD|AUD|CNY|PLN|SEK|NOK|DKK))\s?[-−–]?$"
)


def unit_of(before: str, after: str) -> str:
    """Returns the unit of a number, from the text before and after it; empty if no known unit is there."""
    if found := BEFORE.search(before):
        return UNIT_OF[found[1].lower()]
    if SECONDS.match(after):
        return "second"
    if NAUTICAL.match(after):
        return "nautical mile"
    if symbol := SYMBOL.match(after):
        return symbol[1] if symbol[1][:1] != "K" else f"k{symbol[1][1:]}"
    if found := AFTER.match(after):
        unit = UNIT_OF[found[1].lower()]
        time, speed = SPEEDS.get(unit, (None, ""))
        return speed if time and time.match(after, found.end()) else unit
    return ""


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
    """True if the words around a number describe a loss or fall, so that it may be negative."""
    return LOSS.search(before) is not None or LOWER.match(after) is not None
