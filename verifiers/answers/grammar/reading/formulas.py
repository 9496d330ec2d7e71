r"""Chemical formulas: `\text{CaCO}_3`, `Fe_2O_3`, `\mathrm{SO_4^{2-}}`, `Ca(OH)2`, `CuSO_4\cdot 5H_2O`.

A formula is elements with their counts, groups in brackets, and a charge; it is kept as written, so `HCOOH` differs
from `CH_2O_2`, and capitals count. `CO_2` may be C times O_2: a possible product is a formula only with evidence:
upright letters, an element of two letters beside another, a charge, digits that are not a subscript.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.values import ChemicalFormula

MAX_LENGTH = 120
ELEMENTS = re.findall(
    r"\S+",
    """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr
    Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir
    Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am""",
)
ELEMENT = "|".join(sorted(ELEMENTS, key=len, reverse=True))
BEGINS = re.compile(r"[A-Z(\[\\]")
STYLE = re.compile(r"\\(?:text|textrm|mathrm|mbox|ce|rm)(?![A-Za-z])")
SPACE = re.compile(r"(?:[\s~]|\\[,;:! ])+")
SUBSCRIPT = re.compile(r"_(?:\{\s*([0-9]{1,3})\s*\}|([0-9]))")
CHARGE = re.compile(r"\^(?:\{\s*([0-9]?[+-])\s*\}|([0-9]?[+-]))$")
PLAIN = re.compile(
    rf"(?P<groups>(?:(?:{ELEMENT})(?:[0-9]{{1,3}})?|[(\[]|[)\]](?:[0-9]{{1,3}})?)+)"
    rf"(?:[.](?P<more>[0-9]{{0,2}}(?:(?:{ELEMENT})(?:[0-9]{{1,3}})?)+))?"
)
ATOM = re.compile(ELEMENT)


def formula(text: str, *, upright: bool = False, certain: bool = True) -> ChemicalFormula | None:
    """Returns the formula if the whole text is one, else None. `certain`: only if it cannot be anything else.
    `upright`: the text stood in upright letters."""
    if not BEGINS.match(text) or len(text) > MAX_LENGTH:
        return None
    marked = upright or STYLE.search(text) is not None
    bare = SPACE.sub("", STYLE.sub("", text))
    charge = CHARGE.search(bare.rstrip("}") if bare.endswith("}}") else bare)
    if charge is not None:
        bare = bare[: charge.start()] + "}" * bare[charge.end() :].count("}")
    counted = SUBSCRIPT.sub(lambda found: found[1] or found[2], bare)
    plain_digits = counted == bare and any(sign.isdigit() for sign in bare)
    found = PLAIN.fullmatch(re.sub(r"\\cdot|\*", ".", counted.replace("{", "").replace("}", "")))
    if found is None or not _balanced(found["groups"]):
        return None
    atoms = ATOM.findall(found.group())
    several = len(set(atoms)) > 1
    said = marked or plain_digits or any(len(atom) > 1 for atom in atoms)
    counts = any(sign.isdigit() for sign in found.group())
    if certain and not (charge or (several and counts and said)):
        return None
    written = re.sub(r"(?<![0-9])1(?![0-9])", "", found.group())
    return ChemicalFormula(written + (f"^{charge[1] or charge[2]}" if charge else ""))


def _balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return False
    return depth == 0 and "()" not in text
