"""Lists the tasksets of the code. The table is written out; importing a module never adds to it.

Its functions make tasks from these alone; whoever may be asked for an owner's tasksets too takes a `Catalog`.
"""

from __future__ import annotations

from curriculum.catalog import Catalog
from curriculum.catalog import stable_random as stable_random
from curriculum.checklists.long_form import LONG_FORM
from curriculum.contract.taskset import Taskset
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
from curriculum.tasksets.hidden_rules import HIDDEN_RULES
from curriculum.tasksets.json_documents import JSON_DOCUMENTS
from curriculum.tasksets.knights import KNIGHTS
from curriculum.tasksets.mail_search import MAIL_SEARCH
from curriculum.tasksets.number_theory.digit_problems import DIGIT_PROBLEMS
from curriculum.tasksets.number_theory.diophantine_equations import DIOPHANTINE_EQUATIONS
from curriculum.tasksets.number_theory.divisibility import DIVISIBILITY
from curriculum.tasksets.number_theory.fraction_arithmetic import FRACTION_ARITHMETIC
from curriculum.tasksets.number_theory.modular_arithmetic import MODULAR_ARITHMETIC
from curriculum.tasksets.number_theory.number_bases import NUMBER_BASES
from curriculum.tasksets.number_theory.primes import PRIMES
from curriculum.tasksets.orchestration import TOOL_ORCHESTRATION
from curriculum.tasksets.program_completion import COMPLETIONS
from curriculum.tasksets.program_repair import REPAIRS
from curriculum.tasksets.program_speed import SPEEDS
from curriculum.tasksets.program_tracing import TRACES
from curriculum.tasksets.program_translation import TRANSLATIONS
from curriculum.tasksets.programs import PROGRAMS
from curriculum.tasksets.propositions import PROPOSITIONS
from curriculum.tasksets.regular_expressions import REGULAR_EXPRESSIONS
from curriculum.tasksets.research import RESEARCH_QUESTIONS, RESEARCH_REPORTS
from curriculum.tasksets.shortest_ways import SHORTEST_WAYS
from curriculum.tasksets.tables import TABLES
from curriculum.tasksets.terminal_repairs import TERMINAL_REPAIRS
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
    "environments": (
        MAIL_SEARCH,
        HIDDEN_RULES,
        RESEARCH_QUESTIONS,
        RESEARCH_REPORTS,
        TOOL_ORCHESTRATION,
        TERMINAL_REPAIRS,
    ),
}
"""The tasksets by what they are about. Whoever adds one adds a row."""
BUILT_IN = Catalog(DOMAINS)
TASKSETS = BUILT_IN.tasksets
taskset_named = BUILT_IN.named
domain_of = BUILT_IN.domain_of
make_draft = BUILT_IN.draft
make_task = BUILT_IN.task
task_of = BUILT_IN.task_of
draft_of = BUILT_IN.draft_of
key_of = BUILT_IN.key_of
