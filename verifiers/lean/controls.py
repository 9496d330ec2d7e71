"""Self-checks of a Lean server at its start: Lean works, and each shortcut accepts true and rejects false input."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from verifiers.lean.declarations import examine
from verifiers.lean.headers import Headers
from verifiers.lean.olean import Olean, OleanError
from verifiers.lean.running import Lean, LeanStep
from verifiers.lean.second import verdict_of

PROBE = "theorem probe : True := True.intro\n"
FORMS = """\
structure probe.Pair.{u, v} (A : Sort u) (B : Sort v) where
  one : A
  two : B
inductive probe.Tree : Type where
  | leaf (n : Nat)
  | node (one two : probe.Tree)
def probe.swap.{u, v} (A : Sort u) (B : Sort v) (p : probe.Pair A B) : probe.Pair B A :=
  let a := p.one; (fun b => probe.Pair.mk b a) p.two
"""
"""A declaration of each kind, and most forms of terms."""
FALSE_PROBE = "set_option debug.skipKernelTC true\ntheorem probe : False := by decide +kernel\n"
"""Falsehood that only a replay detects."""
STATED = "theorem probe.stated : True := sorry\n"
CHECK = "\ntheorem probe.check : type_of% @probe.stated := @probe\n#print axioms probe.check\n"
LIMITS: dict[str, Any] = {"seconds": 60.0, "memory_mib": 4096}


def probe(lean: Lean) -> str:
    """Compiles a small theorem with a Lean and returns an error text; empty if its file can be examined."""
    answer = LeanStep(lean, LIMITS | {"source": FORMS + PROBE, "module": "Probe", "keep": True}).run()
    if answer["ended"] == "exited" and answer["code"] == 0 and "file" in answer:
        try:
            olean = Olean(base64.b64decode(answer["file"]))
            examine(olean, ["Init"])
        except OleanError as error:
            return f"its compiled files are of an unknown form: {error}"
        lean.form = olean.form
        return ""
    output = (answer["out"] + answer["err"]).strip()[:1000]
    return f"a small theorem does not compile: {answer['ended']} {answer['code']}: {output}"


def compiled_probes(lean: Lean) -> list[str]:
    """Compiles two test files, and returns them: a true one, and one that only a replay finds false."""
    step = LIMITS | {"module": "Probe", "keep": True}
    return [LeanStep(lean, step | {"source": source}).run().get("file", "") for source in (PROBE, FALSE_PROBE)]


def prove_replay(lean: Lean, made: Sequence[str]) -> str:
    """Returns the kind of kernel replay that accepts a true file and rejects a false one: `library`, `tool`, or empty.
    `made` are `compiled_probes`."""
    limits = LIMITS | {"module": "Probe"}
    if not all(made):
        return ""
    for way in ("library", *(["tool"] if lean.tool else [])):
        lean.replays = way
        again = [
            LeanStep(lean, limits | {"files": {"Probe.olean": file}, "replay": "Probe.olean"}).run() for file in made
        ]
        true, false = (one.get("replayed") if (one["ended"], one["code"]) == ("exited", 0) else None for one in again)
        if true == "yes" and false is not None and "(kernel)" in false:
            return way
    lean.replays = ""
    return ""


def prove_kernel(lean: Lean, made: Sequence[str]) -> str:
    """Returns what is wrong with the second kernel; empty if it accepts a true file and refuses a false one. `made` are
    `compiled_probes`."""
    limits = LIMITS | {"module": "Probe", "export": "probe"}
    if not lean.kernel or not all(made):
        return "no program is installed" if not lean.kernel else "the test files do not compile"
    for file, kind, wanted in zip(made, ("true", "false"), ("accepts", "refuses"), strict=True):
        answer = LeanStep(lean, limits | {"files": {"Probe.olean": file}}).run()
        found = verdict_of(answer["ended"], answer["code"], exported=answer.get("exported", False))
        if found != wanted:
            return f"its verdict on a {kind} proof is {found}: {_outcome(answer)}"
    return ""


def prove_headers(lean: Lean, made: Sequence[str], foreign: Sequence[int] = ()) -> str:
    """Returns what is wrong with preimported headers; empty if they work. `made` are `compiled_probes`.

    They work if a file compiled with one equals the command line's byte for byte, and if a check with one distinguishes
    true, false, open and other proofs.
    """
    if not lean.warm:
        return "this Lean cannot be initialized before a fork"
    if not all(made):
        return "the test files do not compile"
    lean.plain = base64.b64decode(made[0])
    headers = Headers(lean, foreign)
    limits = LIMITS | {"header": ["Init"]}

    def compiled(source: str, module: str = "Probe") -> dict[str, Any]:
        return headers.ask(limits | {"source": f"\n{source}", "module": module, "keep": True})

    def checked(file: str) -> dict[str, Any]:
        files = {"Stated.olean": stated, "Probe.olean": file}
        asked = {"source": CHECK, "module": "Check", "files": files, "add": list(files), "bare": ["Probe.olean"]}
        return headers.ask(limits | asked)

    try:
        step = LIMITS | {"source": f"import Init\n{PROBE}", "module": "Probe", "keep": True}
        cold = LeanStep(lean, step).run().get("file")
        true, wrong = compiled(PROBE), compiled("theorem probe : False := True.intro\n")
        if not cold or true.get("file") != cold:
            return f"a file compiled with a header differs: {_outcome(true)}"
        if (wrong["ended"], wrong["code"]) != ("exited", 1) or '"severity":"error"' not in wrong["out"]:
            return f"a wrong proof is not rejected: {_outcome(wrong)}"
        stated = compiled(STATED, "Stated").get("file", "")
        found = checked(true["file"])
        if not _passes(found) or "does not depend on any axioms" not in found["out"]:
            return f"a true proof is not accepted: {_outcome(found)}"
        found = checked(made[1])
        if found["ended"] != "cold" or "(kernel)" not in found["err"]:
            return f"a file that bypassed the kernel is not detected: {_outcome(found)}"
        found = checked(compiled("theorem probe (p : Prop) (h : p) : p := h\n").get("file", ""))
        if _passes(found) or found["ended"] not in ("exited", "cold"):
            return f"another theorem is not distinguished: {_outcome(found)}"
        found = checked(compiled("theorem probe : True := sorry\n").get("file", ""))
        if not _passes(found) or "[sorryAx]" not in found["out"]:
            return f"an open proof is not distinguished: {_outcome(found)}"
    finally:
        headers.end()
    return ""


def _passes(answer: dict[str, Any]) -> bool:
    return (answer["ended"], answer["code"], answer.get("replayed")) == ("exited", 0, "yes")


def _outcome(answer: dict[str, Any]) -> str:
    return f"{answer['ended']} {answer['code']}: {(answer['out'] + answer['err']).strip()[:500]}"
