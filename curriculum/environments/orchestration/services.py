"""What the servers of a world of orchestration know: pure functions of a seed and a day, the tools of each a class.

What always holds: the same seed and day give the same data, on the host, where ground truth is worked out, and in the
guest, where this file is part of the program. No clock is read. Most data change from day to day. `TOOLS` names the
methods that are tools; signature and docstring are what a model is told of one. A wrong argument is a ValueError that
says what fits.
"""

import hashlib

CITIES = ("Aldgate", "Brimmen", "Corvo", "Dunmere", "Elsing", "Farrow", "Galt", "Hollin", "Istra", "Jorvik")
WAREHOUSES = ("North", "South", "East", "West", "Harbour")
PRODUCTS = ("anvil", "barrel", "chisel", "drill", "easel", "funnel", "grinder", "hoist", "kettle", "ladder", "mallet")
CURRENCIES = ("AUR", "BEL", "COR", "DUC", "ESK")
PEOPLE = ("Abel", "Bruna", "Cyril", "Dora", "Emil", "Flora", "Gideon", "Hester")


class Service:
    """What all of them have: draws that depend on the seed and on what is asked."""

    def __init__(self, seed: int, day: int) -> None:
        self._seed, self._day = seed, day

    def _draw(self, low: int, high: int, *about: object) -> int:
        """A number from low to high."""
        text = "|".join(map(str, (type(self).__name__, self._seed, *about)))
        return low + int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % (high - low + 1)

    def _one(self, among: "tuple[str, ...]", *about: object) -> str:
        return among[self._draw(0, len(among) - 1, *about)]

    def _known(self, what: str, given: str, among: "tuple[str, ...]") -> str:
        if given not in among:
            raise ValueError(f"there is no {what} {given[:40]!r}; there are {', '.join(among)}")
        return given


class Weather(Service):
    """Forecasts and measurements by city."""

    def forecast(self, city: str, days_ahead: int) -> "dict[str, int]":
        """What is expected in a city so many days from today (0 to 6): temperatures in degrees, rain in mm."""
        self._known("city", city, CITIES)
        if not 0 <= days_ahead <= 6:
            raise ValueError("days_ahead is from 0 to 6")
        low = self._draw(-60, 140, "low", city, self._day, days_ahead)
        rain = self._draw(0, 400, "rain", city, self._day, days_ahead)
        return {"low": low, "high": low + self._draw(20, 150, "span", city, self._day, days_ahead), "rain": rain}

    def normals(self, city: str) -> "dict[str, int]":
        """Long-term means of a city: temperatures in degrees, rain in mm. They are no forecast."""
        self._known("city", city, CITIES)
        low = self._draw(-20, 100, "normal", city)
        return {"low": low, "high": low + 80, "rain": self._draw(50, 200, "normal rain", city)}


class Inventory(Service):
    """Stock and prices of today."""

    def stock(self, product: str, warehouse: str) -> int:
        """Units of a product that a warehouse has today."""
        self._known("product", product, PRODUCTS)
        self._known("warehouse", warehouse, WAREHOUSES)
        return self._draw(3, 90, "stock", product, warehouse, self._day)

    def price(self, product: str) -> "dict[str, object]":
        """Today's price of one unit, and the currency that it is in."""
        self._known("product", product, PRODUCTS)
        return {"amount": self._draw(11, 480, "price", product, self._day), "currency": self._currency(product)}

    def warehouses(self) -> "dict[str, str]":
        """All warehouses, and the city that each is in."""
        return {one: self._one(CITIES, "city", one) for one in WAREHOUSES}

    def list_price(self, product: str) -> "dict[str, object]":
        """The price of one unit as the printed catalogue of last year has it."""
        self._known("product", product, PRODUCTS)
        return {"amount": self._draw(11, 480, "catalogue", product), "currency": self._currency(product)}

    def _currency(self, product: str) -> str:
        return self._one(CURRENCIES, "currency", product)


class Currency(Service):
    """Rates of exchange."""

    def rate(self, base: str, quote: str) -> "dict[str, object]":
        """How many thousandths of the quote currency one unit of the base currency buys today."""
        return self._rate(base, quote, self._day)

    def rate_before(self, base: str, quote: str, days: int) -> "dict[str, object]":
        """The rate of so many days ago (1 to 365), in thousandths."""
        if not 1 <= days <= 365:
            raise ValueError("days is from 1 to 365")
        return self._rate(base, quote, self._day - days)

    def _rate(self, base: str, quote: str, day: int) -> "dict[str, object]":
        for one in (base, quote):
            self._known("currency", one, CURRENCIES)
        thousandths = 1000 if base == quote else self._draw(240, 3900, "rate", base, quote, day)
        return {"base": base, "quote": quote, "thousandths": thousandths}


class Calendar(Service):
    """Whom people meet, and where."""

    def next_meeting(self, person: str) -> "dict[str, object]":
        """The next meeting of a person: with whom, in which city, in how many days."""
        self._known("person", person, PEOPLE)
        others = tuple(one for one in PEOPLE if one != person)
        return {
            "with": self._one(others, "with", person, self._day),
            "city": self._one(CITIES, "where", person, self._day),
            "days_ahead": self._draw(0, 6, "when", person, self._day),
        }

    def busy_minutes(self, person: str, days_ahead: int) -> int:
        """For how many minutes a person is busy so many days from today (0 to 6)."""
        self._known("person", person, PEOPLE)
        if not 0 <= days_ahead <= 6:
            raise ValueError("days_ahead is from 0 to 6")
        return 15 * self._draw(0, 32, "busy", person, self._day, days_ahead)


class Routing(Service):
    """Ways between cities."""

    def distance(self, origin: str, destination: str) -> int:
        """Kilometres by the roads that are open today."""
        for one in (origin, destination):
            self._known("city", one, CITIES)
        return 0 if origin == destination else self._draw(31, 960, "km", origin, destination, self._day)

    def minutes(self, origin: str, destination: str) -> int:
        """How long the way takes today, in minutes."""
        return 0 if origin == destination else 20 + self.distance(origin, destination) * self._draw(6, 14, "pace") // 10


class Files(Service):
    """A folder of orders."""

    def list_files(self) -> "dict[str, list[str]]":
        """The names of all files."""
        return {"files": [f"order-{person.lower()}.txt" for person in PEOPLE]}

    def read_file(self, name: str) -> str:
        """The text of a file."""
        person = {f"order-{one.lower()}.txt": one for one in PEOPLE}.get(name)
        if person is None:
            raise ValueError(f"there is no file {name[:40]!r}; list_files names them")
        product, quantity, pays = self.order(person)
        return f"Order of {person}\nproduct: {product}\nquantity: {quantity}\npays in: {pays}\nolder orders: 3\n"

    def order(self, person: str) -> "tuple[str, int, str]":
        """Product, quantity and currency of a person's order."""
        return (
            self._one(PRODUCTS, "product", person, self._day),
            self._draw(5, 60, "quantity", person, self._day),
            self._one(CURRENCIES, "pays", person, self._day),
        )


class Archive(Service):
    """What was true last year."""

    def stock(self, product: str, warehouse: str) -> int:
        """Units of a product that a warehouse had at the end of last year."""
        self._known("product", product, PRODUCTS)
        self._known("warehouse", warehouse, WAREHOUSES)
        return self._draw(3, 90, "old stock", product, warehouse)

    def rate(self, base: str, quote: str) -> "dict[str, object]":
        """The mean rate of last year, in thousandths."""
        for one in (base, quote):
            self._known("currency", one, CURRENCIES)
        return {"base": base, "quote": quote, "thousandths": self._draw(240, 3900, "old rate", base, quote)}


class Travel(Service):
    """A travel agency's offers."""

    def ticket(self, origin: str, destination: str) -> int:
        """The price of a ticket between two cities."""
        for one in (origin, destination):
            self._known("city", one, CITIES)
        return self._draw(9, 210, "ticket", origin, destination, self._day)

    def hotel(self, city: str) -> int:
        """The price of a night in a city."""
        self._known("city", city, CITIES)
        return self._draw(40, 260, "hotel", city, self._day)


class Trivia(Service):
    """Nothing that matters."""

    def fact(self, about: str) -> str:
        """Something to know about a word."""
        return f"The word {about[:20]!r} has {len(about)} letters."


SERVICES = {
    one.__name__.lower(): one
    for one in (Weather, Inventory, Currency, Calendar, Routing, Files, Archive, Travel, Trivia)
}
TOOLS = {
    "weather": ("forecast", "normals"),
    "inventory": ("stock", "price", "warehouses", "list_price"),
    "currency": ("rate", "rate_before"),
    "calendar": ("next_meeting", "busy_minutes"),
    "routing": ("distance", "minutes"),
    "files": ("list_files", "read_file"),
    "archive": ("stock", "rate"),
    "travel": ("ticket", "hotel"),
    "trivia": ("fact",),
}
