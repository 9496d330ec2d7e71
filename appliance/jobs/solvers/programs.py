"""Small programs, found by trying them all: expressions over the arguments, shortest first (bottom-up enumeration with
observational equivalence, as Transit and EUSolver have it: Udupa et al., PLDI 2013; Alur et al., TACAS 2017).

Only the examples that a candidate may see take part in the search, which runs in a sandbox; the hidden ones, the
reference and the properties decide afterwards, where the search never was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from appliance.jobs.solvers.proposal import Bench, Proposal, lines_of
from verifiers.spec import ProgramSpec

SECONDS = 12.0
SEARCH = """
import itertools, time, warnings
warnings.simplefilter('ignore')
calls = {calls}
names = {names!r}
until = time.monotonic() + {seconds} - 1.5
wanted = tuple(repr(value) for _, value in calls)
envs = [dict(zip(names, arguments)) for arguments, _ in calls]
UNARY = ('-{{}}', 'abs({{}})', 'len({{}})', 'sum({{}})', 'max({{}})', 'min({{}})', 'sorted({{}})', 'list({{}})',
         'set({{}})', 'str({{}})', 'int({{}})', '{{}}[::-1]', '{{}}[0]', '{{}}[-1]', '{{}}.lower()', '{{}}.upper()',
         '{{}}.split()', '{{}}.strip()', '(not {{}})', 'bool({{}})', 'sorted(set({{}}))', 'len(set({{}}))', 'bin({{}})',
         '({{}} ** 2)', '({{}} ** 3)')
BINARY = ('({{}} + {{}})', '({{}} - {{}})', '({{}} * {{}})', '({{}} // {{}})', '({{}} % {{}})', '({{}} / {{}})',
          'max({{}}, {{}})', 'min({{}}, {{}})', '({{}} == {{}})', '({{}} < {{}})', '({{}} in {{}})',
          '{{}}.count({{}})', '{{}}.join({{}})', '{{}}[{{}}]', '({{}} and {{}})', '({{}} or {{}})')
scope = dict(abs=abs, len=len, sum=sum, max=max, min=min, sorted=sorted, list=list, set=set, str=str, int=int,
             bool=bool, bin=bin)
seen, sizes, done = set(), {{}}, 0
def keep(text, size):
    global done
    try:
        code = compile(text, 'try', 'eval')
        values = []
        for env in envs:
            value = eval(code, {{'__builtins__': {{}}}}, dict(scope, **env))
            if isinstance(value, int) and value.bit_length() > 512 or hasattr(value, '__len__') and len(repr(value)) > 300:
                return
            values.append(repr(value))
    except Exception:
        return
    key = tuple(values)
    if key == wanted:
        print(text, flush=True)
        done += 1
    elif hash(key) not in seen and len(sizes.get(size, ())) < 20000:
        seen.add(hash(key))
        sizes.setdefault(size, []).append(text)
def over():
    return done >= 3 or time.monotonic() > until or len(seen) > 200000
for text in [*names, '0', '1', '2', '10', "''", "' '", '[]', 'True', 'False']:
    keep(text, 1)
for size in range(2, 9):
    for inner in list(sizes.get(size - 1, ())):
        for form in UNARY:
            if not over():
                keep(form.format(inner), size)
    for first in range(1, size - 1):
        for left, right in itertools.product(sizes.get(first, ()), sizes.get(size - 1 - first, ())):
            if over():
                break
            for form in BINARY:
                keep(form.format(left, right), size)
    if done or over():
        break
"""


def proposals(spec: ProgramSpec, bench: Bench) -> Iterator[Proposal]:
    """Of functions in Python with positional arguments whose visible examples give values."""
    if spec.language != "python" or not spec.function or not spec.function.isidentifier() or spec.driver:
        return
    shown = [one for one in spec.examples if one.visible and not one.raises]
    widths = {_width(one.arguments) for one in shown}
    if len(widths) != 1 or (width := widths.pop()) is None:
        return
    names = [chr(ord("a") + n) for n in range(width)]
    calls = "[" + ", ".join(f"(({one.arguments},), {one.expected})" for one in shown) + "]"
    search = SEARCH.format(calls=calls if width else "[]", names=names, seconds=SECONDS)
    for found in lines_of(bench.run(search, seconds=SECONDS), "enumeration of programs"):
        yield found._replace(text=f"def {spec.function}({', '.join(names)}):\n    return {found.text}\n")


def _width(arguments: str) -> int | None:
    """How many positional arguments; None where there are named ones, too many, or what is no literal."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
        assert isinstance(call, ast.Call)
        for argument in call.args:
            ast.literal_eval(argument)
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
        return None
    return len(call.args) if not call.keywords and len(call.args) <= 6 else None
