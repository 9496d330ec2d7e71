"""Input format of contest problems: parsing, printing, and the codings of values.

Every function here is also copied, as source, into the programs that run in sandboxes, so each uses only its arguments,
the standard library and its neighbours. A layout is a tuple of items, one per line or block of lines:

    "n k"        numbers on one line; one that a later item uses as a length is not passed itself
    "a[n]"       a line of n numbers
    "e[n - 1]3"  n - 1 lines of three numbers
    "s$"         a line with a word
    "g[n]$"      n lines with a word each

Invariants: reading what was printed gives the same arguments; decoding what was encoded with the same numbers does too.
"""

from __future__ import annotations

from typing import Any


def read_case(words: list[str], at: int, layout: tuple[str, ...]) -> tuple[list[Any], int]:
    """Reads one test case from position `at` of all words; returns its arguments and the next position."""
    known: dict[str, int] = {}
    given: list[Any] = []
    used = {item[2] for item in layout if "[" in item}
    for item in layout:
        if "[" not in item and not item.endswith("$"):
            for name in item.split():
                known[name] = int(words[at])
                given += [] if name in used else [known[name]]
                at += 1
            continue
        count = known[item[2]] - (" - 1" in item) if "[" in item else 1
        width = int(item.partition("]")[2].strip("$") or 1)
        piece = words[at : at + count * width]
        at += count * width
        if item.endswith("$"):
            given.append(piece if "[" in item else piece[0])
        else:
            numbers = list(map(int, piece))
            given.append(numbers if width == 1 else list(zip(*[iter(numbers)] * width, strict=True)))
    return given, at


def printed_case(given: list[Any], layout: tuple[str, ...]) -> str:
    """Prints the arguments of one test case."""
    used = [item[2] for item in layout if "[" in item]
    names = [name for item in layout if "[" not in item and not item.endswith("$") for name in item.split()]
    rest = iter(given)
    scalars = {name: next(rest) for name in names if name not in used}
    blocks = list(rest)
    sized = [item for item in layout if "[" in item or item.endswith("$")]
    for item, block in zip(sized, blocks, strict=True):
        if "[" in item:
            scalars[item[2]] = len(block) + (" - 1" in item)
    lines, left = [], iter(blocks)
    for item in layout:
        if "[" not in item and not item.endswith("$"):
            lines.append(" ".join(str(scalars[name]) for name in item.split()))
            continue
        block = next(left)
        if "[" not in item:
            lines.append(block)
        elif item.endswith("$"):
            lines += block
        elif item.endswith("]"):
            lines.append(" ".join(map(str, block)))
        else:
            lines += [" ".join(map(str, row)) for row in block]
    return "\n".join(lines)


def decoded(given: Any, low: int, x: int, y: int, modulus: int) -> Any:
    """Decodes a word, numbers, or the last number of each row."""
    if isinstance(given, str):
        return "".join(chr((ord(c) - 97 + x * i + y) % 26 + 97) for i, c in enumerate(given))
    if given and isinstance(given[0], str):
        return [decoded(row, low, x, y, modulus) for row in given]
    if given and isinstance(given[0], tuple):
        return [(*row[:-1], low + (x * row[-1] + y) % modulus) for row in given]
    return [low + (x * b + y) % modulus for b in given]


def encoded(given: Any, low: int, x: int, y: int, modulus: int) -> Any:
    """Encodes so that `decoded` with the same numbers returns the given value."""
    if isinstance(given, str):
        return decoded(given, low, -x, -y, modulus)
    if given and isinstance(given[0], str):
        return [encoded(row, low, x, y, modulus) for row in given]
    back = pow(x, -1, modulus)
    if given and isinstance(given[0], tuple):
        return [(*row[:-1], (row[-1] - low - y) * back % modulus) for row in given]
    return [(value - low - y) * back % modulus for value in given]


def total_of(answer: Any) -> int:
    """Returns the sum of the numbers in an answer."""
    return sum(answer) if isinstance(answer, list) else answer
