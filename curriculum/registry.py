"""Lists the tasksets in use, and has the one way to make a task from them.

`make_task` is a pure function: the same (taskset, level, seed) gives the same question on every machine. The table is
written out; importing a module never adds to it.
"""

from __future__ import annotations

from random import Random

from curriculum import seeds
from curriculum.checklists.long_form import LONG_FORM
from curriculum.contract.errors import UnknownTasksetError
from curriculum.contract.task import Split, Task
from curriculum.contract.taskset import TaskDraft, Taskset
from curriculum.families.arithmetic import ARITHMETIC
from curriculum.families.counting import COUNTING
from curriculum.families.digits import DIGITS
from curriculum.families.divisors import DIVISORS
from curriculum.families.linear import LINEAR
from curriculum.families.phrased import calculators
from curriculum.families.powers import POWERS
from curriculum.families.sequences import SEQUENCES
from curriculum.names import CALCULATORS as CALCULATORS
from curriculum.tasksets.algebra.complex_numbers import COMPLEX_NUMBERS
from curriculum.tasksets.algebra.exponents_and_logarithms import EXPONENTS_AND_LOGARITHMS
from curriculum.tasksets.algebra.functions import FUNCTIONS
from curriculum.tasksets.algebra.inequalities import INEQUALITIES
from curriculum.tasksets.algebra.linear_systems import LINEAR_SYSTEMS
from curriculum.tasksets.algebra.matrix_algebra import MATRIX_ALGEBRA
from curriculum.tasksets.algebra.polynomial_roots import POLYNOMIAL_ROOTS
from curriculum.tasksets.algebra.polynomials import POLYNOMIALS
from curriculum.tasksets.algebra.rational_expressions import RATIONAL_EXPRESSIONS
from curriculum.tasksets.algebra.recurrences import RECURRENCES
from curriculum.tasksets.assignments import ASSIGNMENTS
from curriculum.tasksets.calculus.derivatives import DERIVATIVES
from curriculum.tasksets.calculus.integrals import INTEGRALS
from curriculum.tasksets.calculus.limits import LIMITS
from curriculum.tasksets.calculus.optimization import OPTIMIZATION
from curriculum.tasksets.calculus.series import SERIES
from curriculum.tasksets.calendars import CALENDARS
from curriculum.tasksets.colourings import COLOURINGS
from curriculum.tasksets.combinatorics.arrangements import ARRANGEMENTS
from curriculum.tasksets.combinatorics.expected_values import EXPECTED_VALUES
from curriculum.tasksets.combinatorics.probability import PROBABILITY
from curriculum.tasksets.constraint_models import CONSTRAINT_MODELS
from curriculum.tasksets.conversions import CONVERSIONS
from curriculum.tasksets.disproofs import DISPROOFS
from curriculum.tasksets.documents import DOCUMENTS
from curriculum.tasksets.geometry.circles import CIRCLES
from curriculum.tasksets.geometry.coordinate_geometry import COORDINATE_GEOMETRY
from curriculum.tasksets.geometry.transformations import TRANSFORMATIONS
from curriculum.tasksets.geometry.triangles import TRIANGLES
from curriculum.tasksets.grids import GRIDS
from curriculum.tasksets.json_documents import JSON_DOCUMENTS
from curriculum.tasksets.knights import KNIGHTS
from curriculum.tasksets.number_theory.digit_problems import DIGIT_PROBLEMS
from curriculum.tasksets.number_theory.diophantine_equations import DIOPHANTINE_EQUATIONS
from curriculum.tasksets.number_theory.divisibility import DIVISIBILITY
from curriculum.tasksets.number_theory.fraction_arithmetic import FRACTION_ARITHMETIC
from curriculum.tasksets.number_theory.modular_arithmetic import MODULAR_ARITHMETIC
from curriculum.tasksets.number_theory.number_bases import NUMBER_BASES
from curriculum.tasksets.number_theory.primes import PRIMES
from curriculum.tasksets.program_completion import COMPLETIONS
from curriculum.tasksets.program_repair import REPAIRS
from curriculum.tasksets.program_speed import SPEEDS
from curriculum.tasksets.program_tracing import TRACES
from curriculum.tasksets.program_translation import TRANSLATIONS
from curriculum.tasksets.programs import PROGRAMS
from curriculum.tasksets.propositions import PROPOSITIONS
from curriculum.tasksets.regular_expressions import REGULAR_EXPRESSIONS
from curriculum.tasksets.shortest_ways import SHORTEST_WAYS
from curriculum.tasksets.tables import TABLES
from curriculum.tasksets.text_changes import TEXT_CHANGES
from curriculum.tasksets.theorems import THEOREMS
from curriculum.tasksets.writing import WRITING

DOMAINS: dict[str, tuple[Taskset, ...]] = {
    "calculator": calculators(ARITHMETIC, DIVISORS, POWERS, COUNTING, SEQUENCES, DIGITS, LINEAR),
    "numbers": (
        FRACTION_ARITHMETIC,
        MODULAR_ARITHMETIC,
        DIVISIBILITY,
        PRIMES,
        NUMBER_BASES,
        DIGIT_PROBLEMS,
        DIOPHANTINE_EQUATIONS,
    ),
    "algebra": (
        LINEAR_SYSTEMS,
        POLYNOMIALS,
        POLYNOMIAL_ROOTS,
        RATIONAL_EXPRESSIONS,
        INEQUALITIES,
        RECURRENCES,
        EXPONENTS_AND_LOGARITHMS,
        COMPLEX_NUMBERS,
        MATRIX_ALGEBRA,
        FUNCTIONS,
    ),
    "calculus": (DERIVATIVES, INTEGRALS, LIMITS, SERIES, OPTIMIZATION),
    "combinatorics": (ARRANGEMENTS, PROBABILITY, EXPECTED_VALUES),
    "geometry": (COORDINATE_GEOMETRY, TRIANGLES, CIRCLES, TRANSFORMATIONS),
    "data": (TABLES, DOCUMENTS),
    "programs": (PROGRAMS, REPAIRS, COMPLETIONS, TRANSLATIONS, SPEEDS, TRACES),
    "proofs": (THEOREMS, DISPROOFS),
    "puzzles": (KNIGHTS, ASSIGNMENTS, GRIDS, PROPOSITIONS, COLOURINGS, CONSTRAINT_MODELS, SHORTEST_WAYS),
    "texts": (TEXT_CHANGES, CALENDARS, CONVERSIONS, JSON_DOCUMENTS, REGULAR_EXPRESSIONS, WRITING, LONG_FORM),
}
"""The tasksets by what they are about. Whoever adds one adds a row."""
TASKSETS: dict[str, Taskset] = {taskset.name: taskset for rows in DOMAINS.values() for taskset in rows}


def domain_of(name: str) -> str:
    """What the taskset of that name is about. Raises UnknownTasksetError."""
    taskset = taskset_named(name)
    return next(domain for domain, rows in DOMAINS.items() if taskset in rows)


def taskset_named(name: str) -> Taskset:
    """The taskset of that name. Raises UnknownTasksetError, with the names that exist."""
    try:
        return TASKSETS[name]
    except KeyError:
        raise UnknownTasksetError(
            f"there is no family {name!r}", hint=f"choose one of {', '.join(sorted(TASKSETS))}"
        ) from None


def make_draft(taskset: str, level: int, seed: int) -> TaskDraft:
    """The item behind (taskset, level, seed), with its answer: for demonstrations and tests, never for the agent.

    Raises UnknownTasksetError or LevelError.
    """
    return taskset_named(taskset).draft(level, stable_random("problem", taskset, level, seed))


def make_task(taskset: str, level: int, seed: int, split: Split) -> Task:
    """The task of (taskset, level, seed). Raises SeedError, UnknownTasksetError or LevelError."""
    seeds.require(seed, split)
    return task_of(make_draft(taskset, level, seed), taskset, level, seed)


def task_of(draft: TaskDraft, taskset: str, level: int, seed: int) -> Task:
    """The task that a draft made by `make_draft` with these arguments becomes."""
    return Task(
        taskset=taskset,
        level=level,
        seed=seed,
        split=seeds.split_of(seed),
        messages=draft.messages,
        spec=draft.spec,
        form=draft.form,
        tools=draft.tools,
        files=dict(draft.files),
        environment=draft.environment,
        world=dict(draft.world),
        turns=draft.turns,
        tokens=draft.tokens,
        key=draft.key,
        provenance=f"{taskset}@{taskset_named(taskset).version}",
    )


def draft_of(task: Task) -> TaskDraft:
    """Reads what a generated task was made from. Raises as `make_draft` does, for example for a job's task."""
    return make_draft(task.taskset, task.level, task.seed)


def key_of(task: Task) -> str:
    """Says what a generated task asks, whatever the words. Raises as `make_draft` does for one without a known key."""
    return task.key or draft_of(task).key


def stable_random(*parts: str | int) -> Random:
    """A generator that depends on these parts alone: no salt of the process, no clock."""
    return Random(int.from_bytes(seeds.digest_of(*parts)))
