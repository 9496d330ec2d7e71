r"""Strict, exact JSON parsing, and validation against JSON schemas.

Decimals are read exactly. `format` is asserted, in all drafts. A `pattern` follows ECMA-262 with its flag `u`: no `\A`,
no `(?P<...>)`, `\d` is an ASCII digit, `$` the very end. The names of `patternProperties` are matched by the library's
own engine, so names that the two would read differently are refused.
"""

from __future__ import annotations

import re
from decimal import Decimal, DecimalException
from functools import lru_cache
from typing import Any

import jsonschema_rs
import regress

from common import strict_json
from common.strict_json import MOST_DIGITS, Bounds, NotJsonError
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped

SYNTAX = r"^$\.*+?()[]{}|/"
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
OTHERWISE = re.compile(r"\[[^\]]*(?<!\\)(?:\[|&&|--|~~)")
"""Nested classes and class algebra, which the library's engine supports and ECMA-262 does not."""
BOUNDS = Bounds(size=1_000_000, values=250_000, containers=250_000, names=250_000, depth=500)
"""Bounds of JSON in a text or of a schema, both of which have at most 200,000 characters."""
PATTERN_HINT = "Write patterns as ECMA-262 reads them with its flag u: see json-schema.org on regular expressions."


def read_json(text: str) -> Any:
    """Parses a text strictly as JSON (RFC 8259), with exact decimals. Raises NotJsonError if it is not JSON."""
    return strict_json.read(text, BOUNDS, parse_float=_decimal)


class Pattern:
    """Keyword `pattern` of JSON schemas, matched by an ECMA-262 engine."""

    def __init__(self, _parent: Any, pattern: Any, _path: Any) -> None:
        self._pattern = ecma(pattern)

    def validate(self, value: Any) -> None:
        if isinstance(value, str) and self._pattern.find(value) is None:
            raise ValueError("does not match the pattern")


def ecma(pattern: Any) -> regress.Regex:
    r"""Compiles a JSON schema's pattern as ECMA-262, with flag `u`; a needlessly escaped character (`\-`, `\@`) is
    literal. Raises ValueError if the pattern is invalid."""
    if not isinstance(pattern, str):
        raise ValueError("a pattern must be text")
    plain = ESCAPED.sub(lambda sign: sign[0] if sign[1] in SYNTAX else f"\\x{ord(sign[1]):02x}", pattern)
    try:
        return regress.Regex(plain, "u")
    except regress.RegressError as error:
        raise ValueError(f"{escaped(pattern)} is not a valid ECMA-262 pattern: {escaped(str(error))}") from None


def _is_pattern(value: str) -> bool:
    try:
        ecma(value)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=64)
def validator(rules: str) -> jsonschema_rs.Validator:
    """Builds the validator of a JSON schema without fetching anything. Raises SpecError for an invalid schema, or a
    reference outside it."""
    try:
        schema = read_json(rules)
    except NotJsonError as error:
        raise SpecError(f"the JSON schema is not JSON: {error}", hint="Write the schema as JSON text.") from error
    for reference in _found(schema, "$ref", "$dynamicRef", "$recursiveRef"):
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SpecError(
                f"the JSON schema refers to {escaped(str(reference))}, outside itself",
                hint="Move the target to $defs and refer to it with #/$defs/NAME.",
            )
    for names in _found(schema, "patternProperties"):
        given = names if isinstance(names, dict) else ()
        wrong = [name for name in given if not _is_pattern(name) or OTHERWISE.search(name)]
        if wrong:
            raise SpecError(
                f"the JSON schema has a name that is not a valid ECMA-262 pattern: {escaped(wrong[0])}",
                hint=PATTERN_HINT,
            )
    try:
        return jsonschema_rs.validator_for(
            schema, validate_formats=True, formats={"regex": _is_pattern}, keywords={"pattern": Pattern}, offline=True
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
        why = getattr(error, "message", None) or str(error)
        raise SpecError(f"the JSON schema cannot be used: {escaped(str(why))}", hint=PATTERN_HINT) from error


def faults_of(rules: str, value: Any) -> list[tuple[str, str]]:
    """Returns the violations of a JSON schema by a value, sorted, each as place and keyword: `$.a[2]`, `type`. Raises
    SpecError for an invalid schema, NotJsonError for a value that JSON cannot express."""
    checker = validator(rules)
    try:
        faults = list(checker.iter_errors(value))
    except UnicodeEncodeError:
        raise NotJsonError("a text contains a lone surrogate") from None
    except ValueError as error:
        raise NotJsonError(escaped(str(error))) from None
    return sorted((_path(fault.instance_path), str((fault.schema_path or [""])[-1])) for fault in faults)


def _path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _found(schema: Any, *names: str) -> list[Any]:
    """Returns the values of the given keywords wherever they occur in a JSON schema."""
    found, waiting = [], [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part[name] for name in names if name in part]
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except DecimalException:
        raise NotJsonError("an exponent is too large") from None
    if abs(number.adjusted()) > MOST_DIGITS or len(text) > MOST_DIGITS:
        raise NotJsonError(f"a number of more than {MOST_DIGITS:,} digits is too long")
    return number
