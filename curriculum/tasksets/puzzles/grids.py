"""Squares of numbers that rules fill in exactly one way: Latin squares, small sudokus, magic squares, sums.

Numbers are removed as long as a search finds a single filling; the answer is a line or two of the square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from verifiers.exact.spec import ExactSpec

Cells = list[int]
"""Cells row by row; 0 is empty."""


def _houses(size: int, width: int, height: int) -> list[list[int]]:
    """Returns the cells of each row, column and, if boxes have a width, box of a square. Each has every number once."""
    rows = [[row * size + column for column in range(size)] for row in range(size)]
    columns = [[row * size + column for row in range(size)] for column in range(size)]
    boxes = [
        [(top + row) * size + left + column for row in range(height) for column in range(width)]
        for top in range(0, size, height or size)
        for left in range(0, size, width or size)
        if width
    ]
    return [*rows, *columns, *boxes]


def _peers(size: int, houses: Sequence[Sequence[int]]) -> list[set[int]]:
    return [{other for house in houses if cell in house for other in house} - {cell} for cell in range(size * size)]


def _fillings(
    cells: Cells, size: int, peers: Sequence[set[int]], order: Callable[[list[int]], list[int]]
) -> Iterator[Cells]:
    """Yields all ways to fill a square's empty cells by the rules, starting with the cell with the fewest choices."""
    best, choices = -1, list(range(size + 2))
    for cell, value in enumerate(cells):
        if not value:
            taken = {cells[peer] for peer in peers[cell]}
            free = [number for number in range(1, size + 1) if number not in taken]
            if len(free) < len(choices):
                best, choices = cell, free
    if best < 0:
        yield list(cells)
        return
    for number in order(choices):
        cells[best] = number
        yield from _fillings(cells, size, peers, order)
    cells[best] = 0


def _fits(cells: Cells, numbers: frozenset[int], peers: Sequence[set[int]]) -> bool:
    """True if a square's empty cells can be filled by the rules. Leaves the cells unchanged."""
    best, choices = -1, numbers
    for cell, value in enumerate(cells):
        if not value:
            free = numbers.difference([cells[peer] for peer in peers[cell]])
            if best < 0 or len(free) < len(choices):
                best, choices = cell, free
                if len(free) < 2:
                    break
    if best < 0:
        return True
    for number in choices:
        cells[best] = number
        if _fits(cells, numbers, peers):
            cells[best] = 0
            return True
    cells[best] = 0
    return False


def _may_go(cells: Cells, cell: int, size: int, peers: Sequence[set[int]]) -> bool:
    """True if a square still has one filling when this cell is emptied: no other number fits into it."""
    numbers = frozenset(range(1, size + 1))
    others = numbers.difference([cells[peer] for peer in peers[cell]], [cells[cell]])
    return not any(_fits([*cells[:cell], other, *cells[cell + 1 :]], numbers, peers) for other in others)


def _shown(cells: Sequence[int], size: int) -> str:
    rows = (cells[at : at + size] for at in range(0, len(cells), size))
    return "\n".join(" ".join(str(value) if value else "." for value in row) for row in rows)


def _square(size: int, width: int, height: int, holes: int, rule: str, rng: Random) -> Item:
    houses = _houses(size, width, height)
    peers = _peers(size, houses)

    def shuffled(numbers: list[int]) -> list[int]:
        return rng.sample(numbers, len(numbers))

    full = next(_fillings([0] * size * size, size, peers, shuffled))
    cells, taken = list(full), 0
    for cell in rng.sample(range(size * size), size * size):
        if _may_go(cells, cell, size, peers):
            cells[cell] = 0
            taken += 1
        if taken == holes:
            break
    empty = [sum(not value for value in cells[at : at + size]) for at in range(0, size * size, size)]
    row = rng.choice([at for at in range(size) if empty[at] == max(empty)])
    # a row of four has 24 ways: two of them are not guessed in 2 %
    rows = sorted([row, rng.choice([at for at in range(size) if at != row])])
    answer = "".join(str(value) for at in rows for value in full[at * size : (at + 1) * size])
    named = " and ".join(str(at + 1) for at in rows)
    text = (
        f"{rng.choice(_FILL)} {rule}\n{_shown(cells, size)}\nThere is exactly one way. Answer with the numbers of rows "
        f"{named}, counted from the top, in turn, without blanks."
    )
    return Item(text=text, key=f"{cells} {rows}", spec=ExactSpec(expected=answer), answer=answer)


_FILL = ("Fill in the empty places, shown as points.", "Each point stands for a number. Find the numbers.",
         "Complete this square.", "Some numbers of this square are missing. Put them in.")  # fmt: skip


def _latin(level: int, rng: Random) -> Item:
    size = (4, 5, 5, 6, 6)[level]
    rule = f"In each row and each column every number from 1 to {size} stands once."
    return _square(size, 0, 0, (8, 12, 15, 20, 24)[level], rule, rng)


def _sudoku(level: int, rng: Random) -> Item:
    size, width, height = ((4, 2, 2), (4, 2, 2), (6, 3, 2), (6, 3, 2), (6, 3, 2))[level]
    rule = (
        f"In each row, each column and each block of {height} rows by {width} columns every number from 1 to {size} "
        f"stands "
        "once."
    )
    return _square(size, width, height, (7, 10, 16, 20, 25)[level], rule, rng)


_TURNS = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8),
    (6, 3, 0, 7, 4, 1, 8, 5, 2),
    (8, 7, 6, 5, 4, 3, 2, 1, 0),
    (2, 5, 8, 1, 4, 7, 0, 3, 6),
)


def _magic(level: int, rng: Random) -> Item:
    """Makes a puzzle of a magic square, with equal sums in all lines of three. Some known numbers fix the rest."""
    middle = rng.randint(-9, 20) + 20 * level
    a, b = rng.randint(1, 9 + 10 * level), rng.randint(1, 9 + 10 * level)
    cells = [
        middle - a,
        middle + a + b,
        middle - b,
        middle + a - b,
        middle,
        middle - a + b,
        middle + b,
        middle - a - b,
        middle + a,
    ]
    cells = [cells[at] for at in rng.choice(_TURNS)]
    known = _settling(5 - min(level, 2), rng)
    lines = "\n".join(
        " ".join(str(cells[at]) if at in known else "." for at in range(row, row + 3)) for row in (0, 3, 6)
    )
    row = rng.choice([at for at in (0, 3, 6) if sum(cell in known for cell in range(at, at + 3)) < 2])
    answer = " ".join(map(str, cells[row : row + 3]))
    text = (
        f"{rng.choice(_FILL)} In this magic square each row, each column and each of the two diagonals has the same "
        f"sum; the "
        f"numbers are whole and need not differ.\n{lines}\nAnswer with the numbers of row {row // 3 + 1}, counted "
        f"from the "
        "top, with a blank between two of them."
    )
    key = f"{[cells[at] if at in known else None for at in range(9)]} {row}"
    return Item(text=text, key=key, spec=ExactSpec(expected=answer), answer=answer)


def _settling(count: int, rng: Random) -> set[int]:
    """Returns cells of a magic square that determine all others, and leave a row with at most one of them."""
    while True:
        known = set(rng.sample(range(9), count))
        if _rank(known) == 3 and any(len(known & {at, at + 1, at + 2}) < 2 for at in (0, 3, 6)):
            return known


_COORDINATES = ((1, -1, 0), (1, 1, 1), (1, 0, -1), (1, 1, -1), (1, 0, 0), (1, -1, 1), (1, 0, 1), (1, -1, -1), (1, 1, 0))
"""Coefficients of a magic square's numbers: the middle one and two differences."""


def _rank(cells: set[int]) -> int:
    rows = [list(_COORDINATES[cell]) for cell in sorted(cells)]
    rank = 0
    for column in range(3):
        pivot = next((at for at in range(rank, len(rows)) if rows[at][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        head = rows[rank]
        for at in range(rank + 1, len(rows)):
            factor = rows[at][column]
            rows[at] = [one * head[column] - factor * other for one, other in zip(rows[at], head, strict=True)]
        rank += 1
    return rank


def _sums(level: int, rng: Random) -> Item:
    """Makes a puzzle of a square of digits with known row and column sums and some known digits."""
    size = 3 if level < 3 else 4
    full = [rng.randint(1, 9) for _ in range(size * size)]
    rows = [sum(full[at * size : (at + 1) * size]) for at in range(size)]
    columns = [sum(full[at::size]) for at in range(size)]
    hidden = _hidden_by_sums(size, (4, 5, 6, 8, 10)[level], full, rng)
    cells = [0 if at in hidden else value for at, value in enumerate(full)]
    lines = [f"{line} = {total}" for line, total in zip(_shown(cells, size).split("\n"), rows, strict=True)]
    text = (
        f"{rng.choice(_FILL)} Every place holds a digit from 1 to 9. Behind each row stands its sum, below each "
        f"column the sum "
        f"of that column:\n{chr(10).join(lines)}\nsums of the columns: {' '.join(map(str, columns))}\n"
        "There is exactly one way. Answer with all digits, row by row from the top, without blanks."
    )
    answer = "".join(map(str, full))
    return Item(text=text, key=f"{cells} {rows} {columns}", spec=ExactSpec(expected=answer), answer=answer)


def _hidden_by_sums(size: int, count: int, full: Sequence[int], rng: Random) -> set[int]:
    """Returns up to `count` cells of a square that its row and column sums and the other cells determine."""
    hidden: set[int] = set()
    for cell in rng.sample(range(size * size), size * size):
        if len(hidden) < count and _count_sums(size, sorted({*hidden, cell}), list(full), 2) == 1:
            hidden.add(cell)
    return hidden


def _count_sums(size: int, hidden: Sequence[int], full: list[int], most: int) -> int:
    """Counts the fillings of a square's hidden cells with the same row and column sums, up to `most`."""
    rows, columns = [0] * size, [0] * size
    for cell in hidden:
        rows[cell // size] += full[cell]
        columns[cell % size] += full[cell]
    last_row = {cell // size: cell for cell in hidden}
    last_column = {cell % size: cell for cell in hidden}

    def fill(at: int) -> int:
        if at == len(hidden):
            return 1
        cell = hidden[at]
        row, column, found = cell // size, cell % size, 0
        choices: Sequence[int] = range(1, 10)
        if last_row[row] == cell:
            choices = (rows[row],)
        if last_column[column] == cell:
            choices = [one for one in choices if one == columns[column]]
        for digit in choices:
            if not 1 <= digit <= min(9, rows[row], columns[column]):
                continue
            rows[row] -= digit
            columns[column] -= digit
            found += fill(at + 1)
            rows[row] += digit
            columns[column] += digit
            if found >= most:
                break
        return found

    return fill(0)


GRIDS = TopicTaskset(
    name="grids",
    version=2,
    makers={"latin_squares": _latin, "small_sudokus": _sudoku, "magic_squares": _magic, "squares_of_sums": _sums},
    null_answers=("1234", "12345", "123456", "0"),
)
