"""A number is what its whole form says, in sentences and in tables; and every usual form of a fact is one."""

# ruff: noqa: E501, SIM905 - tables of texts

from __future__ import annotations

from fractions import Fraction

import pytest
from tables import table

from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.document import Document
from verifiers.checklists.items import decide_item
from verifiers.checklists.numerals.numbers import decimals_of, numbers_in
from verifiers.checklists.spec import CitedSource, NumbersItem, TableItem
from verifiers.registry import decide

OTHERS = (
    "200 0|―200|200k|200K|200 k€|200 bn|$200 bn|200\u202fMrd.|200 thousand|200-thousand|200 Mio.|200m people|$200m|€200 M.|200M|200B"
    "|200 hundred|200 dozen|200 lakh|200 Cr|200万|200億|200 тыс.|200 هزار|200 करोड़|200 × 10³|200 x 10^6|200 * 10**6|200e3"
    "|200e-3|200 tenths|200 thousandths|200 %|200 per cent|200‰|200 basis points|200 ppm|–200|−200|-200|-$200"
    "|$-200|(200)|($200)|(€200)|minus 200|negative 200|minus two hundred|two hundred thousand|two hundred k"
    "|two hundred percent|two hundred and a half|200½|200 1/2|200.5|200,5|200,000|200 000|200\u2009000|200\u202f000|200'000"
    "|200_000|200.000.000|5 200|1,200|0.200|1/200|200/3|200:1|12:200|200²|200<sup>2</sup>|200^2|200 squared|200<sub>3</sub>"
    "|200₃|√200|>200|±200|≠ 200|200th|H200|B200|0x200|1.200.3|200-1-3|2024-02-200|2 0 0|~~200~~|<s>200</s> 300"
    "|[a link](http://x.org/200)|two-hundredths"
).split("|")
SAME = (
    "200|200 t|200t|+200|~200|**200**|_200_|200.0|200,|200!|‘200’|(200 tonnes)|two hundred|Two hundred|two hundred (200)"
    "|200 (two hundred)|0.2k|0.2 thousand|€200|200 EUR|USD 200|US$200|100–200|200-tonne loads|200 km|200 mm|200 m|200 K"
    "|200 m²|200 °C|200\u00a0tonnes|200\u2009tonnes|２００|٢٠٠|۲۰۰|20 × 10 = 200|`width=200`|200 tonnes[^1]\n\n[^1]: So"
).split("|")


def holds(text: str, **fields: object) -> bool:
    return decide_item(NumbersItem.model_validate({"name": "n", **fields}), Document(text), ()).holds


@table("form", OTHERS)
def test_what_stands_around_a_number_makes_it_another_one(form: str) -> None:
    text = f"The two fields together gave {form} of it."
    assert not holds(text, required=("200",), derived="all", facts=("200",), free_up_to=10**6)


@table("form", SAME)
def test_a_number_is_the_same_in_every_usual_form(form: str) -> None:
    assert holds(f"The two fields together gave {form} of it.", required=("200",), facts=("200",), free_up_to=100)


@table(
    "form",
    "200 miles|200-mile|200 kg|$200|200 euros|USD 200|200 days|two hundred miles|200 °C|200 square miles|200m".split(
        "|"
    ),
)
def test_a_fact_in_one_unit_is_no_fact_in_another(form: str) -> None:
    assert not holds(f"The road is {form} of it.", facts=("200 km",))


@pytest.mark.parametrize(
    ("fact", "form"),
    [
        (
            "200 km",
            "200 kilometres|200-kilometer|200km|two hundred kilometres|200 of them|200 km²|200 square kilometres",
        ),
        ("$200", "200 dollars|US$200|USD 200|$ 200|200 in cash"),
        ("200", "200 miles|$200|200 people"),
        ("200 people", "200 hours|200 inhabitants"),
        ("24 hours", "24 h|24-hour|24 hrs|24 Stunden"),
        ("5 °C", "5 °C|5 degrees Celsius|5°C|5 degrees"),
    ],
)
def test_a_unit_may_be_written_out_left_away_or_be_one_that_nobody_lists(fact: str, form: str) -> None:
    for one in form.split("|"):
        assert holds(f"It came to {one} in the end.", facts=(fact,)), one


CELLS = "200k|(200)|($200)|–200|−200|- 200|200-|200 bn|200,000|200 000|200‰|200%|200.5|200m$|200e3|2oo"


@table("cell", CELLS.split("|"))
def test_a_cell_of_a_table_is_read_with_all_that_is_in_it(cell: str) -> None:
    table = f"| Field | Tonnes |\n|---|---|\n| North | 120 |\n| South | 80 |\n| all | {cell} |\n"
    assert not holds(table, required=("200",), facts=("120", "80"), free_up_to=10**6)
    item = TableItem(name="t", columns=("Field", "Tonnes"), sums=("Tonnes",))
    assert not decide_item(item, Document(table), ()).holds


@pytest.mark.parametrize(
    ("south", "total"),
    [("80", "200 t"), ("$80", "$200"), ("€ 80", "**200**"), ("(320)", "(200)"), ("80", "0.2k"), ("−320", "-200")],
)
def test_a_column_adds_up_in_every_usual_form(south: str, total: str) -> None:
    item = TableItem(name="t", columns=("Field", "Tonnes"), sums=("Tonnes",))
    table = f"| Field | Tonnes |\n|---|---|\n| North | 120 |\n| South | {south} |\n| all | {total} |\n"
    assert decide_item(item, Document(table), ()).holds


AGREES = [
    ("La empresa vendió 1.000 unidades en enero y 1.500 en febrero, es decir, 2.500 en total.", "1000 1500 2500"),
    ("Der Betrag ist 1.250,50 € und enthält 19 % Umsatzsteuer.", "1250.50 19%"), ("Avogadro: 6.02 × 10²³.", "6.02e23"),
    ("Everest is 8,849 m high; it was first climbed in 1953 (by E. Hillary).", "8849 1953"), ("0.001 m is 1 × 10⁻³ m.", "0.001"),
    ("At −40 °C, Celsius and Fahrenheit agree: -40 is minus forty.", "-40"), ("3 + 5 = 8, and 8 − 5 = 3.", "3 5 8"),
    ("```python\nx = 1024\n```\n\nIt is 1,024.", "1024"), ("From 2020–2021 it grew; in FY 2021 it stopped.", "2020 2021"),
    ("In all, 12\u2009345 people came.", "12345"), ("In all, 12\u202f345 people came.", "12345"),
    ("In all 12,345 came, 3.5 times as many.", "12345 3.5"), ("12’345 Leute kamen.", "12345"),
    ("Es kamen 12.345 Leute, und das ist viel.", "12345"), ("12,34,567 rupees", "1234567"),
    ("Die Preise sind um 3,5 Prozent gestiegen.", "3.5%"), ("Les prix ont augmenté de 3,5 % dans la région.", "3.5%"),
    ("Prices rose by five percent, or five per cent.", "5%"), ("It is twenty-five percent.", "25%"), ("٥٪", "5%"),
    ("One percent of it.", "1%"), ("It made $3.2 million, or 3.2m dollars.", "3200000"), ("Half a million came.", "500000"),
    ("It fell to –5 degrees, to minus five.", "-5"), ("人口は200万人です。", "2000000"), ("Население 200 тыс. человек.", "200000"),
    ("It made 1,234,567.89 in all.", "1234567.89"), ("Es waren 1.234.567,89 Euro und mehr.", "1234567.89"),
]  # fmt: skip


@table(("text", "facts"), AGREES)
def test_a_fact_may_be_written_as_its_readers_write_it(text: str, facts: str) -> None:
    assert holds(text, facts=tuple(facts.split()), required=tuple(facts.split()))


@table(
    ("text", "facts"),
    [
        ("It made $3.2M.", "3214567"), ("It rose by 5–10 %.", "5% 10%"), ("From $5 to 10 million.", "5000000 10000000"),
        ("On 2024-05-12 at 10:30 it was 9/10 full.", "2024 5 12 10 30 9"), ("## 2.1 Results\n\nAll 7.", "7"),
        ("GPT-4, IPv6, H2O, CO₂, m², 1.2.3 and 0xff are names.", "7"), ("As (Smith 2020) says, 7 [1, 2].", "7"),
        ("Points: (1) wheat, (2) rye; 7 in all.", "7"), ("The sum –7 tonnes– is fine.", "7"), ("Two thirds came.", "2 3"),
    ],
)  # fmt: skip
def test_what_is_no_amount_needs_no_fact(text: str, facts: str) -> None:
    assert holds(text, facts=tuple(facts.split()), derived="all")


@pytest.mark.parametrize(
    "text",
    ["It gave 120k tonnes.", "It gave 120 [500 tonnes] in all.", "It gave five hundred.", "12 345 of 120 came.",
     "It rose by fifty percent.", "Es waren 1,20 Tonnen, und das ist viel.", "It is 120 – or –120."],
)  # fmt: skip
def test_what_is_no_fact_is_found(text: str) -> None:
    assert not holds(text, facts=("120",))


def test_decimals_are_those_of_the_text() -> None:
    assert decimals_of("Der Ertrag war 1.234 Tonnen, und die Preise stiegen.") == "comma"
    assert (
        decimals_of("It was 1,234 tonnes.") == decimals_of("La cosecha fue de 1,234,567 toneladas y 3.5 más") == "point"
    )


def test_a_number_of_a_source_is_a_fact() -> None:
    source = CitedSource(key="A", text="Die Felder brachten 1.234 Tonnen und 3,5 Prozent mehr.")
    item = NumbersItem(name="n", from_sources=True)
    assert decide_item(item, Document("It was 1,234 tonnes, 3.5% more."), (source,)).holds
    assert not decide_item(item, Document("It was 1,235 tonnes."), (source,)).holds


IN_WORDS = (
    "Der Anteil lag bei fünf Prozent der Menschen.=5%|Es waren zweihundertfünf Menschen in der Stadt.=205"
    "|Der Wert ist um drei Komma fünf Prozent gestiegen.=3.5%|Fast zwei Drittel der Leute sind in der Stadt.=2⁄3"
    "|Eine Million Menschen sind in der Stadt.=1000000|La part est de cinq pour cent.=5%"
    "|Il y a deux cent cinq hommes dans la ville.=205|Les quatre-vingt-dix-sept maisons de la ville sont là.=97"
    "|Le prix est de deux virgule cinq pour cent.=2.5%|Les deux tiers des gens sont dans la ville.=2⁄3"
    "|Neuf pour cent des gens sont dans la ville.=9%|La parte es del cinco por ciento.=5%"
    "|Hay doscientos cinco libros en la casa de los niños.=205|Hay treinta y dos casas en la ciudad de los reyes.=32"
    "|Creció un tres coma cinco por ciento en el año.=3.5%|La quota è del cinque per cento.=5%"
    "|Ci sono duecentocinque case nella città.=205|Sono ventitré case nella città e nel paese.=23"
    "|Un per cento della gente è nella città.=1%|Un milione di case della gente è nella città e non nel paese con il porto.=1000000"
).split("|")


@table("line", IN_WORDS)
def test_number_words_of_other_languages_are_facts(line: str) -> None:
    text, _, fact = line.partition("=")
    assert holds(text, facts=(fact,), free_up_to=0)
    assert not holds(text, facts=("77777",), free_up_to=0)


NO_NUMBERS = (
    "Ein Mann und eine Frau gehen in die Stadt.|Gib acht auf die Kinder in der Stadt!|Man muss das Mehl sieben und rühren."
    "|Die Elf hat in der Stadt nicht gespielt.|Das ist der dritte Tag in der Stadt.|Die Stadt ist ein Tausendsassa der Kunst."
    "|Un homme et une femme sont dans la ville.|Un livre neuf est dans la ville.|Le premier jour, les gens sont dans la ville."
    "|Les gens de la ville sont dans son jardin.|Une voiture neuve est dans la rue.|Un hombre y una mujer en la ciudad de los reyes."
    "|Unos libros y unas casas de la ciudad.|El primero de los libros es de la ciudad.|Un uomo e una donna sono nella città."
    "|Tu sei nella città con il gatto.|Il primo libro è nella città.|Once upon a time there was a man in the city."
    "|The cent and the mill are no sums here.|Sin embargo, los libros son de la ciudad."
).split("|")


@table("text", NO_NUMBERS)
def test_words_that_only_look_like_numbers_are_none(text: str) -> None:
    assert holds(text, facts=(), free_up_to=0)


def test_a_factor_behind_digits_is_no_number_of_its_own() -> None:
    assert holds("Il y a 5 millions de gens et 5 pour cent de la ville.", facts=("5000000", "5%"), free_up_to=0)


def test_a_total_is_the_sum_of_facts_that_stand_one_behind_another() -> None:
    facts = ("1,204", "310", "86", "€12", "€9")
    assert holds("Together they are 1,600.", facts=facts, derived="sums")
    assert holds("Together they are 1,621.", facts=facts, derived="sums")
    assert not holds("Together they are 1,302.", facts=facts, derived="sums")
    assert not holds("Together they are 1,600.", facts=facts)


def test_the_mean_of_two_facts_follows_from_all() -> None:
    assert holds("The mean of both is 40.", facts=("30", "120", "50"), derived="all")
    assert not holds("The mean of both is 40.", facts=("30", "120", "50"), derived="sums")


@pytest.mark.parametrize(
    ("fact", "form"),
    [("40 tonnes", "40 kilotonnes"), ("40 years", "40 light-years"), ("£40", "40 pence"), ("$40", "40 cents")],
)
def test_a_unit_that_looks_like_the_facts_is_another_one(fact: str, form: str) -> None:
    assert not holds(f"It is {form} in all.", facts=(fact,))


def test_a_column_in_two_units_is_not_added_up() -> None:
    item = TableItem(name="t", columns=("Part", "Weight"), sums=("Weight",))
    rows = "| Part | Weight |\n|---|---|\n| Frame | 500 g |\n| Wheel | 1 {} |\n| Total | 501 {} |\n"
    assert decide_item(item, Document(rows.format("g", "g")), ()).holds
    assert decide_item(item, Document(rows.format("g", "")), ()).holds
    assert not decide_item(item, Document(rows.format("kg", "kg")), ()).holds


def test_two_is_a_number_where_facts_count_more_than_can_be_compared() -> None:
    def holds(things: int) -> bool:
        counted = " ".join(
            f"3 k{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}{chr(97 + n // 676)}s." for n in range(things)
        )
        item = NumbersItem(name="n", from_sources=True)
        return decide_item(
            item, Document("It lies between the two lakes."), (CitedSource(key="1", text=counted),)
        ).holds

    assert holds(40)
    assert not holds(700)


@table(
    ("written", "value"),
    [
        ("12,34,567.5", "1234567.5"), ("1.234.567,5", "1234567.5"), ("1'234'567", "1234567"),
        ("1 234 567,5", "1234567.5"), ("1,234,567", "1234567"), ("1234,56", "1234.56"),
    ],
)  # fmt: skip
def test_a_numeral_is_the_number_that_it_is_in_an_answer(written: str, value: str) -> None:
    said = numbers_in(f"It has {written} books.", "comma" if written == "1234,56" else "point")
    assert [number.readings[0][0].value for number in said] == [Fraction(value)]
    assert decide(AnswerSpec(expected=value), written).passed
