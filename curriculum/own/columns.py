"""Reads a problem from a row with any column names: GSM8K, MATH, MBPP, HumanEval, APPS, miniF2F.

Invariants: a row gives one problem with one check, or a RowError that says what is missing; nothing in a row is run or
evaluated, and a check is built from the row alone. A date, telephone number, version, range or score is a name, not a
sum: `1/2/2024` is not 1/4048.

Reads common test formats as call examples: `assert f(1, [2]) == 3`, and inputs with outputs.

Invariants: a test is parsed and never run; only a call with plain values, compared with a plain value, becomes an
example. Anything else is refused, because its code would run beside the submission.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from common import strict_json
from common.bounded_models import first_fault
from common.strict_json import Bounds, NotJsonError
from curriculum.contract.errors import CurriculumError
from curriculum.own.rows import QUESTION_CHARS, OwnRow
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import SPEC, Spec

CANDIDATE = "candidate"
"""Name of the function in HumanEval's `check(candidate)`."""
METHODS = "Solution"
"""Class whose method LeetCode's problems ask for."""
_METHODS = re.compile(rf"^class {METHODS}\b", re.MULTILINE)
_DRIVER = f"def drive(solution, *arguments):\n    return solution.{METHODS}().{{}}(*arguments)\n"
MOST_TESTS = 500
MOST_CHARS = 1_000_000
CELL = Bounds(16 << 20, depth=500)
"""Bounds of JSON in a table's cell."""
_MAY_NOT_RUN = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)


def examples_of(tests: Any, function: str) -> tuple[str, list[dict[str, Any]]]:
    """Parses assertions such as `assert f(1) == 2` into call examples. Returns the function's name and the examples.
    Raises ValueError for any other test."""
    text = "\n".join(map(str, tests)) if isinstance(tests, list) else str(tests)
    if len(text) > MOST_CHARS:
        raise ValueError(f"they have more than {MOST_CHARS:,} characters")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("they are not Python") from None
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Assert)]
    if not found:
        raise ValueError("they have no assertion")
    if len(found) > MOST_TESTS:
        raise ValueError(f"there are more than {MOST_TESTS}")
    inner = (below for one in ast.walk(tree) if isinstance(one, _MAY_NOT_RUN) for below in ast.walk(one))
    if any(isinstance(one, ast.Assert) for one in inner):
        raise ValueError("an assertion is in a branch or loop, so it may run never or often")
    examples = [_example(one.test) for one in found]
    names = {name for name, _ in examples}
    if len(names) != 1:
        raise ValueError("they call more than one function")
    [called] = names
    if called == CANDIDATE and not function:
        raise ValueError("they call `candidate`, and no column names the function (entry_point)")
    if function and called not in (function, CANDIDATE):
        raise ValueError("they call another function than the named one")
    return function or called, [example for _, example in examples]


def _example(test: ast.expr) -> tuple[str, dict[str, Any]]:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)):
        raise ValueError("an assertion does not compare a call with a value")
    sides = [test.left, test.comparators[0]]
    calls = [side for side in sides if isinstance(side, ast.Call) and isinstance(side.func, ast.Name)]
    if len(calls) != 1 or isinstance(calls[0], ast.Constant):
        raise ValueError("an assertion does not compare a call with a value")
    call = calls[0]
    assert isinstance(call.func, ast.Name)
    expected = sides[1] if sides[0] is call else sides[0]
    for value in (*call.args, *(keyword.value for keyword in call.keywords), expected):
        try:
            ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise ValueError("an assertion has a value that is not plain") from None
    arguments = [ast.unparse(one) for one in call.args]
    arguments += [f"{one.arg}={ast.unparse(one.value)}" for one in call.keywords]
    return call.func.id, {"arguments": ", ".join(arguments), "expected": ast.unparse(expected)}


def runs_of(tests: Mapping[str, Any], function: str) -> dict[str, Any]:
    """Converts a problem's tests, `inputs` and `outputs` in the format of APPS and TACO, to spec fields. They are calls
    if a function is named, else standard input and output. Raises ValueError."""
    inputs, outputs = tests.get("inputs", tests.get("input")), tests.get("outputs", tests.get("output"))
    if not isinstance(inputs, list) or not isinstance(outputs, list) or not inputs or len(inputs) != len(outputs):
        raise ValueError("inputs and outputs differ in number")
    if len(inputs) > MOST_TESTS:
        raise ValueError(f"there are more than {MOST_TESTS}")
    if function:
        results = _results(outputs)
        examples = [
            {"arguments": ", ".join(map(repr, _listed(given))), "expected": repr(expected)}
            for given, expected in zip(inputs, results, strict=True)
        ]
        return {"function": function, "examples": examples}
    if not all(isinstance(one, str) for one in (*inputs, *outputs)):
        raise ValueError("inputs and outputs are not text, and no function is named")
    return {"runs": [{"stdin": given, "expected": out} for given, out in zip(inputs, outputs, strict=True)]}


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _results(outputs: list[Any]) -> list[Any]:
    """Unwraps the function results of a problem in the format of APPS if each is in a one-item list."""
    wrapped = all(isinstance(one, list) and len(one) == 1 for one in outputs)
    return [one[0] for one in outputs] if wrapped else outputs


OwnKind = Literal["auto", "answer", "program", "lean", "smt", "checklist", "exact"]

QUESTION = ("question", "problem", "prompt", "query", "instruction", "informal_statement", "task", "text")
ANSWER = ("final_answer", "expected_answer", "gold", "target", "answer", "expected", "output", "label")
SOLUTION = ("solution", "canonical_solution", "reference", "reference_solution", "code", "proof", "response")
TESTS = ("tests", "test", "unit_tests", "test_list", "test_cases", "input_output")
STATEMENT = ("formal_statement", "lean4_statement", "lean_statement", "statement")
CLAIM = ("claim", "smt", "smt2")
CHECKLIST = ("checklist", "rubric", "rubrics", "items")
FUNCTION = ("entry_point", "function", "fn_name", "function_name")
PARTS = ("choices", "options", "endings", "body", "context", "passage", "input")
"""Columns that hold a part of the question, which the question column may lack."""
PLACEHOLDERS = ("proof", "not found", "notfound", "n/a", "nan", "none", "null")
"""Values of published tables for an answer that is missing."""
LONGEST_ANSWER = 2_000
_GROUPED = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NAMED_BY_NUMBERS = re.compile(r"\+?\d+(?:[-\u2013]\d+)+|\d+(?:[/.]\d+){2,}")
_SEPARATORS = frozenset(("Po", "Pd", "Pc", "Pi", "Pf", "Zs"))
"""Unicode categories of punctuation without brackets; an answer of nothing else is what a faulty export left."""
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")
_OPERATORS = frozenset("-*/%")
_MATHEMATICS = re.compile(r"[0-9\\=<>^+*/()\[\]{}]|^[A-Za-z]$")


class RowError(CurriculumError):
    """No problem with a check can be read from a row. Equal reasons have equal text, so they can be counted."""


def row_of(row: Mapping[str, Any], kind: OwnKind, origin: str) -> OwnRow:
    """Reads the problem and its check from a table row with any column names; runs nothing. Raises RowError."""
    columns = filled(row)
    made = kind_of_columns(columns) if kind == "auto" else kind
    question = text_in(columns, QUESTION)
    try:
        if made == "spec":
            spec, answer = SPEC.validate_python(json_in(columns["spec"])), text_in(columns, (*ANSWER, *SOLUTION))
        else:
            spec, question, answer = MAKERS[made](columns, question)
        for text in (question, answer, spec.model_dump_json()):
            text.encode()
    except (UnicodeError, PydanticSerializationError):
        raise RowError("it has a lone surrogate, which is not valid text") from None
    except ValidationError as error:
        raise RowError(f"invalid check: {first_fault(error)}") from None
    if not question:
        raise RowError(f"it has no question (a column named {', '.join(QUESTION[:4])} or so)")
    if len(question) > QUESTION_CHARS:
        raise RowError(f"its question is longer than {QUESTION_CHARS:,} characters")
    for name in PARTS:
        if name in columns and not _is_within(columns[name], question):
            raise RowError(f"a part of its question is in the column {name}: write it into the question")
    made_row = OwnRow(question=question, spec=spec, answer=answer, origin=origin)
    if made_row.form is AnswerForm.WORLD:
        raise RowError("its check judges a world, which a table row does not have")
    return made_row


def _is_within(part: Any, question: str) -> bool:
    """True if a text has every text and number of a cell, ignoring blanks."""
    if isinstance(part, dict | list):
        return all(_is_within(one, question) for one in (part.values() if isinstance(part, dict) else part))
    return "".join(str(part).split()) in "".join(question.split())


def question_of(row: Mapping[str, Any]) -> str:
    """Returns the question in a table row; empty if none."""
    return text_in(filled(row), QUESTION)


def filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table row's filled cells by lower-case column name, without NaN, which tables use for missing values.
    Raises RowError if a name has two values."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        short = str(name).strip().lower()
        if value in (None, "", [], {}) or (isinstance(value, float) and not isfinite(value)):
            continue
        if short in found and found[short] != value:
            raise RowError(f"it has two columns named {short[:40]!a}")
        found[short] = value
    return found


def kind_of_columns(columns: Mapping[str, Any]) -> str:
    """Returns the kind of check that a table row's columns call for. Raises RowError if they have no answer."""
    if "spec" in columns:
        return "spec"
    for names, kind in ((STATEMENT, "lean"), (CLAIM, "smt"), (TESTS, "program"), (CHECKLIST, "checklist")):
        if _value(columns, names) is not None:
            return kind
    answer, _ = final_answer(columns)
    if answer not in _OPERATORS and all(unicodedata.category(character) in _SEPARATORS for character in answer):
        raise RowError(f"its final answer is only punctuation ({answer[:40]!a}); add it with --kind exact if meant")
    if answer.casefold() in PLACEHOLDERS:
        raise RowError(f"its final answer is a placeholder ({answer!a}); add it with --kind exact if meant")
    return kind_of_answer(answer)


def kind_of_answer(answer: str) -> Literal["answer", "exact"]:
    """Returns how an expected answer is compared: as mathematics, or letter by letter if it is a name or a text."""
    return "answer" if _MATHEMATICS.search(answer) and not _NAMED_BY_NUMBERS.fullmatch(answer) else "exact"


def final_answer(columns: Mapping[str, Any]) -> tuple[str, str]:
    r"""Returns a table row's final answer: the text after `####`, in the last `\boxed{}`, or in an answer column. The
    second is how another column writes it, if that differs. Raises RowError if none is found, or others contradict."""
    found: list[str] = []
    for name in (*ANSWER, *SOLUTION):
        text = text_in(columns, (name,))
        short = name in ANSWER and len(text) <= LONGEST_ANSWER and "\n" not in text and "####" not in text
        if answer := _marked(text) or (text if short else ""):
            found += dict.fromkeys(last_box(one) or answer for one in (answer, text))
        if name in ANSWER and not (found or text) and isinstance(columns.get(name), bool | dict | list):
            raise RowError(f"it has no final answer: its column {name} is not one text or number")
    if not found:
        raise RowError(f"it has no final answer (a column named {', '.join(ANSWER[:5])}; `#### 42`; `\\boxed{{42}}`)")
    if hidden := _HIDDEN.search(found[0]):
        raise RowError(f"its final answer has a hidden character ({hidden[0]!a})")
    gold = _plain(found[0])
    others = {_normal(text): _plain(text) for text in found if text.strip(" ,.;:$")}
    others.pop(_normal(gold), None)
    if len(others) > 1 or (others and all(map(_is_plain, (_normal(gold), *others)))):
        raise RowError("its columns have different final answers")
    return gold, next(iter(others.values()), "")


def _marked(text: str) -> str:
    after = text.rpartition("####")[2].strip() if "####" in text else ""
    return after if after and "\n" not in after else last_box(text)  # else a heading with more text below


def _is_plain(answer: str) -> bool:
    """True for a number, a letter or a name: two of them with different texts are different answers."""
    return bool(_NUMBER.fullmatch(answer)) or len(answer) == 1 or kind_of_answer(answer) == "exact"


def _normal(text: str) -> str:
    """Returns a final answer as it is compared with another of the same row: without blanks and variants of LaTeX."""
    text = re.sub(r"\\(left|right|,|!|;)|[\s$]", "", _plain(text)).replace("\\dfrac", "\\frac")
    text = text.removesuffix(".").replace("\\tfrac", "\\frac").casefold()
    return str(Decimal(text).normalize()) if _NUMBER.fullmatch(text) and len(text) < 25 else text


def last_box(text: str) -> str:
    r"""Returns the content of the last `\boxed{...}` with balanced braces; empty if none."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return ""
    depth = 0
    for place in range(start + len("\\boxed"), len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start + len("\\boxed{") : place].strip()
    return ""


def _plain(text: str) -> str:
    text = text.strip().removeprefix("$").removesuffix("$").strip()
    if not text.strip(" ,.;:"):
        raise RowError(f"its final answer is only punctuation ({text!a})")
    return text.replace(",", "") if _GROUPED.fullmatch(text) else text


def _answer(columns: Mapping[str, Any], question: str) -> tuple[Spec, str, str]:
    found, other = final_answer(columns)  # the checker decides whether two ways to write it are equal
    return SPEC.validate_python({"kind": "answer", "expected": found}), question, other or found


def _exact(columns: Mapping[str, Any], question: str) -> tuple[Spec, str, str]:
    found, _ = final_answer(columns)
    return SPEC.validate_python({"kind": "exact", "expected": found}), question, found


def _lean(columns: Mapping[str, Any], question: str) -> tuple[Spec, str, str]:
    statement = text_in(columns, STATEMENT)
    if not statement:
        raise RowError(f"it has no statement (a column named {', '.join(STATEMENT[:2])})")
    header = text_in(columns, ("header", "imports"))
    whole = f"{header}\n{statement}" if header and header not in statement else statement
    asked = question or "Prove this theorem."
    if statement not in asked:
        asked = f"{asked}\n\n```lean\n{whole}\n```"
    return SPEC.validate_python({"kind": "lean", "statement": whole}), asked, text_in(columns, SOLUTION)


def _smt(columns: Mapping[str, Any], question: str) -> tuple[Spec, str, str]:
    claim = text_in(columns, CLAIM)
    if not claim:
        raise RowError(f"it has no claim (a column named {CLAIM[0]})")
    spec = SPEC.validate_python({"kind": "smt", "claim": claim, "question": columns.get("asks", "model")})
    return spec, question, text_in(columns, (*ANSWER, *SOLUTION))


def _checklist(columns: Mapping[str, Any], question: str) -> tuple[Spec, str, str]:
    items = json_in(_value(columns, CHECKLIST))
    if not isinstance(items, list):
        raise RowError("its checklist is not a list of items")
    made = [{"item": "soft", "name": one[:60], "point": one} if isinstance(one, str) else one for one in items]
    spec = SPEC.validate_python({"kind": "checklist", "items": made, "question": question})
    return spec, question, text_in(columns, SOLUTION)


def _program(columns: Mapping[str, Any], question: str) -> tuple[Spec, str, str]:
    tests, named = json_in(_value(columns, TESTS)), text_in(columns, FUNCTION)
    reference = text_in(columns, SOLUTION)
    try:
        if isinstance(tests, dict):
            named = named or str(tests.get("fn_name") or "")
            function, fields = named, runs_of(tests, named)
        else:
            function, examples = examples_of(tests, named)
            fields = {"function": function, "examples": examples}
    except ValueError as error:
        raise RowError(f"its tests are unusable: {error}") from None
    starter = text_in(columns, ("starter_code",))
    if starter and question and starter not in question:
        question = f"{question}\n\n```python\n{starter}\n```"
    if function and function.isidentifier() and _METHODS.search(starter or reference):
        fields |= {"function": METHODS, "driver": _DRIVER.format(function)}
    elif function and function not in question:
        question = f"{question}\nThe function is called `{function}`." if question else question
    return SPEC.validate_python({"kind": "program", **fields}), question, reference


MAKERS = {"answer": _answer, "exact": _exact, "lean": _lean, "smt": _smt, "checklist": _checklist, "program": _program}


def _value(columns: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((columns[name] for name in names if name in columns), None)


def text_in(columns: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Returns the first of these columns that has a value, as stripped text. A list of one item counts as that item.
    Empty for values other than texts and numbers."""
    value = _value(columns, names)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def json_in(value: Any) -> Any:
    """Parses a table cell's value if it is JSON in a string; returns any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return strict_json.read(value, CELL)
        except NotJsonError as error:
            if error.other:
                return value
            raise RowError(f"a cell with JSON is unusable: {error}") from None
    return value
