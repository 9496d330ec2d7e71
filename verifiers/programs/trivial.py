"""Programs that do nothing of what is asked: tests that one of them passes are no tests."""

from __future__ import annotations

from verifiers.programs.spec import ProgramSpec
from verifiers.programs.values import NotPlainError, arguments_text, read_arguments

CONSTANTS = ("None", "0", "1", "True", "False", "''", "[]", "()", "{}", "-1")


def trivial(spec: ProgramSpec) -> dict[str, str]:
    """Sources by what they are."""
    if not spec.function:
        if spec.language != "python":
            return {"an empty program": "\n"}
        return {
            "an empty program": "pass\n",
            "a program that repeats its input": "import sys\nsys.stdout.write(sys.stdin.read())\n",
            "a table of the visible runs": "import sys\nprint("
            + repr({(run.stdin, run.arguments): run.expected for run in spec.runs if run.visible})
            + ".get((sys.stdin.read(), tuple(sys.argv[1:])), ''), end='')\n",
        }
    name = spec.function
    others = "".join(
        f"def {relation.other}(*given, **named):\n    return None\n" for relation in spec.relations if relation.other
    )
    if spec.driver:  # what is asked for may be anything
        return {"a class without methods": f"class {name}:\n    pass\n"}
    bodies = {f"a function that returns {value}": f"return {value}" for value in CONSTANTS}
    bodies["a function that returns its argument"] = "return given[0] if given else None"
    bodies["a function that raises"] = "raise ValueError"
    found = {what: f"def {name}(*given, **named):\n    {body}\n{others}" for what, body in bodies.items()}
    return found | {"a table of the visible examples": _table(spec) + others}


def _table(spec: ProgramSpec) -> str:
    rows = []
    for example in spec.examples:
        if example.visible and example.expected:
            try:
                text = arguments_text(read_arguments(example.arguments))
            except NotPlainError:
                continue
            rows.append(f"    if _key({text}) == asked: return {example.expected}\n")
    return (
        "nan, inf = float('nan'), float('inf')\ndef _key(*given, **named):\n    return repr((given, named))\n"
        f"def {spec.function}(*given, **named):\n    asked = _key(*given, **named)\n{''.join(rows)}    return None\n"
    )
