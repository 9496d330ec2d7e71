"""Static checks for program specs that decide nothing or accept a program that does nothing.

Cheap: no code runs. What needs generated tests or properties is checked by the verifier before it reads a submission.
"""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache
from keyword import iskeyword
from typing import NamedTuple

from verifiers.contract.errors import SpecError
from verifiers.programs.data.generators import problem
from verifiers.programs.data.values import NotPlainError, literal, parsed, read, read_arguments
from verifiers.programs.languages import KNOWN
from verifiers.programs.plan import plan
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.trivial import refuse_idle

OF_A_MODULE = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__builtins__", "__class__", "solution"}


class SourceNames(NamedTuple):
    outermost: frozenset[str]
    """Names that are bound at the top level of the module."""
    unknown: tuple[str, ...]
    """Names that are used but bound nowhere, in source order."""
    anything: bool
    """True if names may come from elsewhere (`import *`, `exec`), so that `unknown` proves nothing."""


def names_of(tree: ast.Module) -> SourceNames:
    bound: set[str] = set()
    used: dict[str, None] = {}
    anything = False
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used[name] = None
                anything = anything or name in ("exec", "globals", "locals", "vars")
            case ast.Name(id=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name="*"):
                anything = True
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                bound.update(names)
            case _:
                pass
    unknown = tuple(name for name in used if name not in bound and name not in OF_A_MODULE)
    return SourceNames(frozenset(_outermost(tree.body)), unknown, anything)


def _outermost(body: list[ast.stmt]) -> set[str]:
    """Returns the names that a module's own statements bind, including those in conditions and loops."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.alias(name=name, asname=other):
                    found.add(other or name.partition(".")[0])
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case _:
                    pass
    return found


@lru_cache(maxsize=256)
def check(spec: ProgramSpec) -> None:
    """Raises SpecError for a program spec that cannot be used, without running its code."""
    if spec.function:
        _check_function(spec)
    else:
        _check_runs(spec)
    for name, source, wanted in [
        ("driver", spec.driver, "drive"),
        ("maker", spec.maker, ""),
        ("reference", spec.reference if spec.language == "python" else "", "" if spec.driver else spec.function),
        *((f"property {place + 1}", source, "holds") for place, source in enumerate(spec.properties)),
    ]:
        if source:
            _check_source(name, source, wanted, len(spec.inputs))
    if not (spec.generate or spec.cases or spec.relations):
        refuse_idle(spec, plan(spec))


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not iskeyword(text)


def _check_source(name: str, source: str, wanted: str, inputs: int) -> None:
    try:
        tree = parsed(source, "exec")
    except SyntaxError as error:
        raise SpecError(f"the {name} is not Python: {error}") from error
    assert isinstance(tree, ast.Module)
    names = names_of(tree)
    if names.anything:
        return
    if wanted and wanted not in names.outermost:
        raise SpecError(f"the {name} defines no function {wanted}", hint=f"It needs `def {wanted}(...)`.")
    if names.unknown:
        raise SpecError(f"the {name} uses {names.unknown[0]}, which is not defined", hint="Define or import it.")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == wanted and wanted in ("drive", "holds"):
            _check_judging(name, node, inputs)


def _check_judging(name: str, function: ast.FunctionDef, inputs: int) -> None:
    """Raises SpecError for a property or driver with too few arguments or many, or that ignores its first."""
    takes = function.args
    plain = [*takes.posonlyargs, *takes.args]
    about = "solution" if function.name == "drive" else "result"
    needed = len(plain) - len(takes.defaults)
    if not takes.vararg and (not plain or len(plain) <= inputs or needed > inputs + 1) and inputs:
        raise SpecError(
            f"the {name} takes {len(plain)} arguments, not {inputs + 1}",
            hint=f"It is `def {function.name}({about}, *arguments)`, with one argument for each of `inputs`.",
        )
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if plain and not used & {plain[0].arg, *(["solution"] if function.name == "drive" else [])}:
        raise SpecError(f"the {name} never uses its {about}, so everything passes", hint="Check something about it.")


def _check_function(spec: ProgramSpec) -> None:
    if spec.language != "python" or spec.tool is not None:
        raise SpecError(
            "only Python programs can be called by function", hint="Leave `function` out and give `runs` instead."
        )
    if not _is_name(spec.function):
        raise SpecError(f"{spec.function!r} is not a valid function name")
    if spec.runs or spec.maker or spec.cases or spec.slack:
        raise SpecError(
            "`runs`, `maker`, `cases` and `slack` are for whole programs",
            hint="Leave out `function`, or give `examples` instead.",
        )
    if spec.generate and not spec.inputs:
        raise SpecError("`generate` needs `inputs`", hint="Declare `inputs`, one for each argument.")
    if spec.generate and not (spec.reference or spec.properties):
        raise SpecError("generated inputs need expected results", hint="Add a `reference` or `properties`.")
    if spec.properties and not spec.generate:
        raise SpecError("properties are checked on generated inputs", hint="Set `generate` to their number.")
    if spec.relations and not spec.inputs:
        raise SpecError("relations need generated inputs", hint="Declare `inputs`, one for each argument.")
    _check_inputs(spec)
    for relation in spec.relations:
        if (relation.kind == "inverse") != bool(relation.other):
            raise SpecError("`other` names the inverse function: required for an inverse, invalid otherwise")
        if relation.other and not _is_name(relation.other):
            raise SpecError(f"{relation.other!r} is not a valid function name")
        if relation.kind == "inverse" and spec.driver:
            raise SpecError("an inverse cannot be checked through a driver")
        if relation.argument >= len(spec.inputs) or (relation.kind == "swap" and len(spec.inputs) < 2):
            raise SpecError(f"the relation {relation.kind} changes an argument that is not declared")
    if not spec.examples and not spec.generate:
        if spec.relations:
            raise SpecError(
                "relations alone accept a constant function", hint="Add examples, a reference or properties."
            )
        raise SpecError("the spec has no tests", hint="Give `examples`, or `inputs` with a reference or properties.")
    _check_examples(spec)


def _check_inputs(spec: ProgramSpec) -> None:
    for found in filter(None, map(problem, spec.inputs)):
        raise SpecError(f"inputs cannot be generated: {found}")


def _check_examples(spec: ProgramSpec) -> None:
    seen: dict[str, str] = {}
    takes_any = False
    for place, example in enumerate(spec.examples):
        if bool(example.expected) == bool(example.raises):
            raise SpecError(f"example {place + 1} needs exactly one of `expected` and `raises`")
        if example.raises and not _is_name(example.raises):
            raise SpecError(f"example {place + 1}: {example.raises!r} is not a valid exception name")
        try:
            arguments = read_arguments(example.arguments)
            result = f"raises {example.raises}" if example.raises else literal(read(example.expected))
        except NotPlainError as error:
            raise SpecError(f"example {place + 1}: {error}", hint="Values are Python literals, as text.") from error
        takes_any = takes_any or bool(arguments.positional or arguments.named)
        if seen.setdefault(literal(arguments.positional) + str(arguments.named), result) != result:
            raise SpecError(f"example {place + 1} contradicts an earlier example with the same arguments")
    if spec.generate:
        return
    if takes_any and len(set(seen.values())) == 1:
        raise SpecError(
            "every example has the same result, so a constant passes", hint="Add one with another result, or generate."
        )
    if takes_any and all(example.visible for example in spec.examples):
        raise SpecError(
            "every test is visible, so a table of them passes",
            hint="Add examples that are not shown, or generate some.",
        )


def _check_runs(spec: ProgramSpec) -> None:
    if spec.language not in KNOWN and spec.tool is None:
        known = ", ".join(sorted(KNOWN))
        raise SpecError(
            f"unknown language {spec.language!r} (known: {known})", hint="Describe in `tool` how to run it."
        )
    if spec.tool is not None:
        for command in (spec.tool.run, spec.tool.build):
            if command and not command[0].startswith("/"):
                raise SpecError(
                    f"{command[0]!r} is not an absolute path", hint="Name a tool by its path in the sandbox."
                )
    for name in ("examples", "properties", "relations", "driver"):
        if getattr(spec, name):
            raise SpecError(f"`{name}` needs a function to call", hint="Name it in `function`, or give `runs` only.")
    if spec.generate and not (spec.inputs and spec.reference):
        raise SpecError("generated input needs `inputs` and a `reference`")
    if bool(spec.maker) != bool(spec.cases) or (spec.cases and not spec.reference):
        raise SpecError("made inputs need `maker`, `cases` and a `reference`", hint="Give all three.")
    if spec.slack and not (spec.generate or spec.cases):
        raise SpecError("`slack` needs generated or made inputs", hint="Give `cases` with a `maker`, or `generate`.")
    _check_inputs(spec)
    if not spec.runs and not spec.generate and not spec.cases:
        raise SpecError("the spec has no tests", hint="Give `runs`, or a `function` with examples.")
    if any("\0" in argument for run in spec.runs for argument in run.arguments):
        raise SpecError("an argument of a run contains NUL")
    if spec.generate or spec.cases:
        return
    if any(run.stdin or run.arguments for run in spec.runs):
        if len({(run.expected.strip(), run.exit_code) for run in spec.runs}) == 1:
            raise SpecError("every run has the same output, so a constant passes", hint="Add one with another output.")
        if all(run.visible for run in spec.runs):
            raise SpecError("every test is visible, so a table of them passes", hint="Add runs that are not shown.")
    elif any(not run.expected.strip() and run.exit_code == 0 for run in spec.runs):
        raise SpecError("a program that does nothing passes", hint="Give its expected output.")
