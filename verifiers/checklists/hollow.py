"""What is there and says nothing: sections without words of their own, code that does nothing, columns without a cell.

Gaps are known by their usual words, see `gaps`; a section that says its heading again, or what another section says, is
known whatever its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from verifiers.checklists.characters import plain
from verifiers.checklists.gaps import is_gap_mark
from verifiers.checklists.markdown import MarkdownBlock
from verifiers.checklists.prose import words

PARTS = frozenset(["section", "chapter", "part", "paragraph", "abschnitt", "kapitel", "chapitre", "sección", "sezione"])
ANNOUNCING = PARTS.union(
    re.findall(
        r"\w+",
        "this the is are a an of for and about here our we you in it describes presents contains covers discusses"
        " explains shows gives lists treats reports dieser der die das beschreibt enthält cette le la les décrit"
        " contient esta este describe contiene questa questo descrive",
    )
)
"""`This section describes the results`."""
SHORT_SECTION = 4
"""Words from which on two sections do not say the same by chance: `None.` may stand in several."""
NO_SIGN = re.compile(r"[\s\-\u2010-\u2015.…?_/*|]*")
COMMENT = re.compile(r"\s*(?://|#(?!\w|\[|!)|--|/\*|\*(?:\s|/|$)|<!--|;|%).*|\s*")


def section_text(blocks: Sequence[MarkdownBlock], at: int) -> str:
    """What stands in the section of the heading at this place, `plain`, be it below a heading of a lower rank."""
    said: list[str] = []
    for block in blocks[at + 1 :]:
        if block.kind == "heading":
            if block.level <= blocks[at].level:
                break
        else:
            said += [block.text, *(cell for row in block.rows[1:] for cell in row)]
    return "\n".join(plain(one) for one in said if words(one))


def is_gap(text: str, heading: str = "") -> bool:
    """Whether a section, an item or a cell has no word, only its heading again, or only what stands for a text."""
    own = own_words(text, heading)
    echo = words(plain(text)) in ([], words(plain(heading)))
    announced = own <= ANNOUNCING and not own.isdisjoint(PARTS)
    return echo or announced or is_gap_mark(plain(text))


def own_words(text: str, heading: str) -> frozenset[str]:
    """What a section says beside its heading."""
    return frozenset(words(plain(text))) - set(words(plain(heading)))


def empty_columns(rows: Sequence[Sequence[str]]) -> Iterable[int]:
    """Columns of which no row says anything."""
    return (
        at for at in range(len(rows[0]) if rows else 0) if all(_says_nothing(row[at]) for row in rows if at < len(row))
    )


def _says_nothing(cell: str) -> bool:
    """A tick or a star says something, a dash does not."""
    return NO_SIGN.fullmatch(cell) is not None or (bool(words(cell)) and is_gap(cell))


def is_all_comment(code: str) -> bool:
    return all(COMMENT.fullmatch(line) for line in code.splitlines())
