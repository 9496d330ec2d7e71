"""Says in which unit or currency a number stands, where that is one of a few that everybody writes; else nothing.

Two numbers differ in their unit only where both have one of these: who writes no unit, or one that is not listed, has
contradicted nothing. Areas and volumes count as their length: `km²` and `square kilometres` are written in many ways.
"""

from __future__ import annotations

import re

SPELLED = {
    "km": "km kilometre kilometres kilometer kilometers kilometern kilomètre kilomètres kilómetro kilómetros"
    " chilometro chilometri quilómetro quilómetros км",
    "m": "m metre metres meter meters metern mètre mètres metro metros metri",
    "cm": "cm centimetre centimetres centimeter centimeters zentimeter centimètres centímetros centimetri",
    "mile": "mi mile miles meile meilen milles millas miglia",
    "foot": "ft foot feet",
    "kg": "kg kilo kilos kilogram kilograms kilogramm kilogrammes kilogramme kilogramos chilogrammi",
    "g": "g gram grams gramm gramme grammes gramos grammi",
    "mg": "mg milligram milligrams milligramm milligrammes miligramos milligrammi",
    "kilotonne": "kt kilotonne kilotonnes kilotons",
    "megatonne": "megatonne megatonnes megatons",
    "light year": "light-year light-years lightyears lichtjahr lichtjahre lichtjahren",
    "mm": "millimetre millimetres millimeter millimeters millimetern",
    "ounce": "oz ounce ounces",
    "pound": "lb lbs",
    "tonne": "tonne tonnes ton tons tonnen toneladas tonnellate",
    "millisecond": "ms millisecond milliseconds millisekunden",
    "second": "sec secs second seconds sekunde sekunden seconde secondes segundo segundos",
    "minute": "min mins minute minutes minuten minutos minuti",
    "hour": "h hr hrs hour hours stunde stunden heure heures horas",
    "day": "day days tage tagen jour jours día días giorno giorni",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane",
    "month": "month months monat monate monaten mois mes meses mese mesi",
    "year": "year years yr yrs jahr jahre jahren ans année années año años anno anni",
    "decade": "decade decades",
    "century": "century centuries",
    "hectare": "ha hectare hectares hektar",
    "acre": "acre acres",
    "millilitre": "ml millilitre millilitres milliliter milliliters",
    "litre": "litre litres liter liters litern litros litri",
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "dollar": "$ usd dollar dollars dólares dollari",
    "euro": "€ eur euro euros",
    "cent": "¢ cent cents",
    "sterling": "£ gbp",
    "penny": "penny pence",
    "yen": "¥ jpy yen",
    "rupee": "₹ inr rupee rupees",
    "franc": "chf franken francs",
}
UNIT_OF = {word: unit for unit, words in SPELLED.items() for word in words.split()}
ANY = "|".join(re.escape(word) for word in sorted(UNIT_OF, key=len, reverse=True))
AFTER = re.compile(rf"[\s-]?(?:(?:square|cubic|sq\.?|cu\.?|degrees?)\s)?({ANY})(?!\w)", re.IGNORECASE)
BEFORE = re.compile(r"([$€£¥₹]|\b(?:USD|EUR|GBP|JPY|INR|CHF))\s?[-−–]?$")


def unit_of(before: str, after: str) -> str:
    """The unit of a number between these two pieces of text; empty where it has none of those listed."""
    found = BEFORE.search(before) or AFTER.match(after)
    return UNIT_OF[found[1].lower()] if found else ""
