"""Layouts in which others publish rows (verl, SkyRL, TRL, APPS, SWE-bench, ...), each by the columns that it names.

Invariants: a layout is recognised by the names of columns alone; only the columns that it names reach a question, a
check or a reference, and the others are listed; nothing is unpickled or run; JSON in a cell is parsed once, within
bounds. A new layout is one row of `LAYOUTS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from common import strict_json
from common.strict_json import NotJsonError
from curriculum.own.columns import ANSWER, CELL, CHECKLIST, CLAIM, PARTS, STATEMENT, TESTS, RowError, filled, json_in

OTHER_CHECKS = frozenset(("spec", *TESTS, *STATEMENT, *CLAIM, *CHECKLIST))
NOT_TEXT = ("images", "image", "videos", "video", "audio")
FORMS = (
    (
        "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
        "$Answer (without quotes) where $Answer is the answer to the problem."
    ),
    'Remember to put your answer on its own line after "Answer:".',
    'Let\'s think step by step and output the final answer after "####".',
)
"""Sentences of published prompts that ask for another form of the answer than the one that is asked for here."""
SKYRL_ANSWERS = ("aime", "gsm8k", "gsm8k_multi_turn", "math", "multiply", "lcb")
"""Environments of SkyRL that compare a final answer or run tests."""
ONLY_TESTS = ("input_output", "public_test_cases", "private_test_cases", "test_cases", "verifier_metadata.unit_tests")
_LEAN_3 = re.compile(r":=\s*begin\b|\bopen_locale\b|^import (data|tactic|analysis|topology|algebra)\.", re.M)
_BARE = re.compile(r"\$[^$]+\$|\\\([^\n]+\\\)|\S+")
"""Text that is an answer as a whole, without words around it."""


class RowLayout(NamedTuple):
    """Paths are names of columns, and after a dot names inside the object or JSON text of the column."""

    name: str
    keys: tuple[str, ...]
    """Names of columns that are all in a row; `a|b` is either."""
    question: tuple[str, ...] = ()
    """Paths of text or messages: the first that has a value."""
    answer: tuple[str, ...] = ()
    """Paths of final answers, or of tests."""
    solution: tuple[str, ...] = ()
    """Paths of references: code, a proof, or an explanation whose marked answer has to agree."""
    more: tuple[tuple[str, str], ...] = ()
    """Names in `curriculum.own.columns`, with the paths of their values."""
    identity: str = ""
    """Path of the publisher's name for the row."""
    common: bool = False
    """True if its names are common: a row with another check is not in this layout."""
    refused: str = ""


LAYOUTS = (
    RowLayout(
        "SWE-bench",
        ("fail_to_pass|base_commit|test_patch|image_name", "patch|instance_id|problem_statement"),
        refused="it needs a repository and an image: make Harbor folders of such rows (task.toml, Dockerfile, tests)",
    ),
    RowLayout(
        "Countdown",
        ("target", "nums|numbers"),
        refused="any equation with the value is right, which no comparison of answers checks",
    ),
    RowLayout(
        "LiveCodeBench",
        ("question_content", "public_test_cases|private_test_cases"),
        question=("question_content",),
        answer=("public_test_cases", "private_test_cases"),
        more=(("entry_point", "metadata.func_name"), ("starter_code", "starter_code")),
        identity="question_id",
    ),
    RowLayout("OpenThoughts", ("conversations",), refused="its conversation is a demonstration, and it has no check"),
    RowLayout(
        "OpenThoughts",
        ("problem", "ground_truth_solution"),
        question=("problem",),
        answer=("test_cases",),
        solution=("ground_truth_solution",),
        more=(("starter_code", "starter_code"),),
    ),
    RowLayout(
        "SkyRL",
        ("prompt", "reward_spec"),
        question=("prompt",),
        answer=("reward_spec.ground_truth",),
        identity="extra_info.index",
    ),
    RowLayout(
        "verl",
        ("prompt", "reward_model"),
        question=("prompt",),
        answer=("reward_model.ground_truth",),
        identity="extra_info.index",
    ),
    RowLayout(
        "NeMo Gym",
        ("responses_create_params",),
        question=("responses_create_params.input", "question"),
        answer=("expected_answer", "verifier_metadata.unit_tests"),
    ),
    RowLayout(
        "NuminaMath-LEAN",
        ("formal_statement", "formal_proof|formal_ground_truth|rl_data"),
        question=("problem",),
        solution=("formal_proof", "formal_ground_truth"),
        more=(("formal_statement", "formal_statement"),),
        identity="uuid",
    ),
    RowLayout(
        "ProofNet",
        ("lean4_formalization",),
        question=("nl_statement",),
        more=(("formal_statement", "lean4_formalization"), ("header", "lean4_src_header")),
        identity="id",
    ),
    RowLayout(
        "miniF2F",
        ("formal_statement", "header|src_header|informal_prefix|informal_stmt|nl_statement"),
        question=("informal_prefix", "informal_stmt", "nl_statement"),
        more=(("formal_statement", "formal_statement"), ("header", "header"), ("header", "src_header")),
        identity="name",
    ),
    RowLayout(
        "APPS",
        ("question", "input_output", "solutions|starter_code"),
        question=("question",),
        answer=("input_output",),
        solution=("solutions",),
        more=(("starter_code", "starter_code"),),
        identity="problem_id",
    ),
    RowLayout("DeepScaleR", ("problem", "answer", "solution"), ("problem",), ("answer",), ("solution",), common=True),
    RowLayout(
        "NeMo RL", ("problem|question", "expected_answer"), ("problem", "question"), ("expected_answer",), common=True
    ),
    RowLayout("slime", ("prompt|input", "label"), ("prompt", "input"), ("label",), common=True),
    RowLayout("AReaL", ("messages", "answer"), ("messages",), ("answer",), common=True),
    RowLayout(
        "AReaL", ("prompt", "solutions", "query_id"), ("prompt",), ("solutions",), identity="query_id", common=True
    ),
    RowLayout(
        "TRL",
        ("prompt", "solution|answer|ground_truth"),
        question=("prompt",),
        answer=("answer", "ground_truth"),
        solution=("solution",),
        common=True,
    ),
    RowLayout(
        "TRL",
        ("prompt", "completion|chosen"),
        refused="its completion is a demonstration, and it has no check (a column named answer or solution)",
        common=True,
    ),
)


class Published(NamedTuple):
    columns: Mapping[str, Any]
    """The row in the names of `curriculum.own.columns`."""
    note: str
    """What the layout reads, and what it leaves out."""
    identity: str


def published(row: Mapping[str, Any]) -> Published | None:
    """Reads a table row in the layout that its columns name; None for no layout. Raises RowError if the layout has no
    check that works here, or its values contradict each other."""
    columns = filled(row)
    names = {str(name).strip().lower() for name in row}
    plain = OTHER_CHECKS.isdisjoint(columns)
    fits = (
        one for one in LAYOUTS if all(names & set(key.split("|")) for key in one.keys) and (plain or not one.common)
    )
    layout = None if "spec" in columns else next(fits, None)
    if layout is None:
        return None
    if layout.refused:
        raise RowError(f"{layout.name}: {layout.refused}")
    if media := [name for name in NOT_TEXT if name in columns]:
        raise RowError(f"{layout.name}: its question has more than text (the column {media[0]})")
    cells = _RowCells(columns)
    _require_rule(layout, cells)
    found = {name: value for name, path in reversed(layout.more) if (value := cells.at(path)) is not None}
    found["question"] = next((text for path in layout.question if (text := _question(cells.at(path)))), "")
    _add_answers(layout, cells, found)
    _add_solution(layout, cells, found)
    if "formal_statement" in dict(layout.more) and "formal_statement" not in found:
        raise RowError(f"{layout.name}: it has no statement ({dict(layout.more)['formal_statement']})")
    for name in ("formal_statement", "header"):
        if _LEAN_3.search(str(found.get(name, ""))):
            raise RowError(f"{layout.name}: its statement is Lean 3: translate it to Lean 4")
    found |= {name: columns[name] for name in PARTS if name in columns.keys() - cells.read}
    left = sorted(name[:40] for name in set(columns) - {path.partition(".")[0] for path in cells.read})
    note = f"{layout.name}: {', '.join(sorted(cells.read))}" + (f"; left out: {', '.join(left)}" if left else "")
    identity = cells.at(layout.identity) if layout.identity else None
    return Published(found, note[:400], re.sub(r"[^\w.:/|-]", "_", str("" if identity is None else identity)[:60]))


class _RowCells:
    """A row's cells by path. A cell's JSON is parsed once; `read` has the paths of values that were found."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns
        self._parsed: dict[str, Any] = {}
        self.read: set[str] = set()

    def at(self, path: str) -> Any:
        """Returns the value at a path; None if it has none or an empty one."""
        first, *inner = path.split(".")
        value = self._columns.get(first)
        if inner and first not in self._parsed:
            self._parsed[first] = json_in(value)
        value = self._parsed[first] if inner else value
        for name in inner:
            value = value.get(name) if isinstance(value, dict) else None
        if value in (None, "", [], {}):
            return None
        self.read.add(path)
        return value


def _require_rule(layout: RowLayout, cells: _RowCells) -> None:
    """Raises RowError for a row whose reward is not a comparison with a value or a run of tests."""
    for path in ("reward_model.style", "reward_spec.method"):
        style = str(cells.at(path) or "rule")
        if not style.startswith("rule"):
            raise RowError(f"{layout.name}: {path} is {style[:40]!a}: it needs a judge, and there is none for rows")
    for path in ("problem_is_valid", "solution_is_valid"):
        if (valid := str(cells.at(path) or "Yes")) != "Yes":
            raise RowError(f"{layout.name}: {path} is {valid[:40]!a}")
    world = cells.at("env_class") if layout.name == "SkyRL" else None
    if world is not None and world not in SKYRL_ANSWERS:
        raise RowError(f"SkyRL: the environment {str(world)[:40]!a} is unknown here: use one that compares answers")
    if cells.at("responses_create_params.tools"):
        raise RowError(f"{layout.name}: it has tools of its own, which a row cannot bring")


def _question(value: Any) -> str:
    """Returns the text of a question: text, or messages of a system and a user. Raises RowError for messages of others,
    and for parts that are not text."""
    messages = value
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        messages = json_in(value)
    if not (isinstance(messages, list) and messages and all(isinstance(one, dict) for one in messages)):
        return _without_form(value) if isinstance(value, str) else ""
    if any(one.get("role") not in ("system", "developer", "user") for one in messages):
        raise RowError("its prompt has turns of others than a system and a user: a question ends before the first")
    return _without_form("\n\n".join(_content(one.get("content")) for one in messages))


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in parts):
        raise RowError("its prompt has a part that is not text")
    return "\n".join(one["text"] for one in parts)


def _without_form(text: str) -> str:
    text = text.strip()
    if text.startswith("/--") and text.endswith("-/"):  # a comment of Lean
        text = text[3:-2].strip()
    for form in FORMS:
        text = text.removeprefix(form).removesuffix(form).strip()
    return text


def _add_answers(layout: RowLayout, cells: _RowCells, found: dict[str, Any]) -> None:
    """Adds a row's final answers or tests. Raises RowError for tests that cannot be read, or are in a pickle."""
    tests: list[Any] = []
    answers: list[Any] = []
    for path in layout.answer:
        value = cells.at(path)
        data = json_in(value)
        if path == "private_test_cases" and isinstance(data, str):
            raise RowError(
                f"{layout.name}: {path} is a pickle, which is never loaded here: decode it elsewhere, to JSON"
            )
        if isinstance(data, dict) and not ("inputs" in data or "input" in data):
            raise RowError(f"{layout.name}: {path} is an object without inputs and outputs: it has a check of its own")
        if isinstance(data, dict) or (isinstance(data, list) and all(_is_assertion(one) for one in data)):
            found["tests"] = data
        elif isinstance(data, list) and all(isinstance(one, dict) for one in data):
            tests += data
        elif path in ONLY_TESTS and value is not None:
            raise RowError(f"{layout.name}: {path} is not a list of inputs with outputs")
        elif value is not None:
            several = isinstance(value, list) or (isinstance(data, list) and all(isinstance(one, str) for one in data))
            answers += data if several else [value]
    if tests:
        found["tests"] = _runs(tests, found)
    if len(answers) > len(ANSWER):
        raise RowError(f"{layout.name}: it has more than {len(ANSWER)} answers")
    found.update(zip(ANSWER, answers, strict=False))


def _is_assertion(one: Any) -> bool:
    return isinstance(one, str) and one.lstrip().startswith("assert")


def _runs(tests: Sequence[Mapping[str, Any]], found: Mapping[str, Any]) -> dict[str, Any]:
    """Converts tests in the format of LiveCodeBench to that of APPS: texts, or a line of JSON for each argument."""
    if not all({"input", "output"} <= set(one) for one in tests):
        raise RowError("its tests are unusable: one lacks an input or an output")
    if all(one.get("testtype", "stdin") == "stdin" for one in tests):
        return {"inputs": [one["input"] for one in tests], "outputs": [one["output"] for one in tests]}
    about = json_in(tests[0].get("metadata"))
    function = found.get("entry_point") or (about.get("func_name") if isinstance(about, dict) else None)
    if not function or not all(one.get("testtype") == "functional" for one in tests):
        raise RowError("its tests are unusable: they call a function, and no column names it (metadata.func_name)")
    try:
        inputs = [[strict_json.read(line, CELL) for line in str(one["input"]).splitlines() if line] for one in tests]
        outputs = [[strict_json.read(str(one["output"]), CELL)] for one in tests]
    except NotJsonError as error:
        raise RowError(f"its tests are unusable: {error}") from None
    return {"inputs": inputs, "outputs": outputs, "fn_name": function}


def _add_solution(layout: RowLayout, cells: _RowCells, found: dict[str, Any]) -> None:
    """Adds a row's reference: the first text of a list, without a fence or `sorry`; a bare answer is one."""
    for path in layout.solution:
        value = cells.at(path)
        value = json_in(value) if isinstance(value, str) and value.lstrip()[:1] == "[" else value
        text = (next(iter(value), "") if isinstance(value, list) else value) or ""
        if not isinstance(text, str) or not text or ("formal_statement" in found and re.search(r"\bsorry\b", text)):
            continue
        text = re.sub(r"\A```\w*\n([\s\S]*?)\n?```\s*\Z", r"\1", text.strip())
        bare = "tests" not in found and "formal_statement" not in found and _BARE.fullmatch(text)
        if not bare:
            found["solution"] = text
        elif ANSWER[-1] not in found:
            found[ANSWER[-1]] = text
        return
