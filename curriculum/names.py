"""Names of all built-in tasksets, and the place where each is defined. Imports none of them.

Invariants: the table is literal; importing a module never adds to it. A name here is the taskset's own.
"""

from __future__ import annotations

from common.plugins.table import names_from_outside

PLACES: dict[str, dict[str, str]] = {
    "calculator": {
        "arithmetic": "curriculum.families.arithmetic:ARITHMETIC",
        "divisors": "curriculum.families.divisors:DIVISORS",
        "powers": "curriculum.families.powers:POWERS",
        "counting": "curriculum.families.counting:COUNTING",
        "sequences": "curriculum.families.sequences:SEQUENCES",
        "digits": "curriculum.families.digits:DIGITS",
        "linear": "curriculum.families.linear:LINEAR",
    },
    "numbers": {
        "fraction_arithmetic": "curriculum.tasksets.number_theory.fraction_arithmetic:FRACTION_ARITHMETIC",
        "modular_arithmetic": "curriculum.tasksets.number_theory.modular_arithmetic:MODULAR_ARITHMETIC",
        "divisibility": "curriculum.tasksets.number_theory.divisibility:DIVISIBILITY",
        "primes": "curriculum.tasksets.number_theory.primes:PRIMES",
        "number_bases": "curriculum.tasksets.number_theory.number_bases:NUMBER_BASES",
        "digit_problems": "curriculum.tasksets.number_theory.digit_problems:DIGIT_PROBLEMS",
        "diophantine_equations": "curriculum.tasksets.number_theory.diophantine_equations:DIOPHANTINE_EQUATIONS",
    },
    "algebra": {
        "linear_systems": "curriculum.tasksets.algebra.linear_systems:LINEAR_SYSTEMS",
        "polynomials": "curriculum.tasksets.algebra.polynomials:POLYNOMIALS",
        "polynomial_roots": "curriculum.tasksets.algebra.polynomial_roots:POLYNOMIAL_ROOTS",
        "rational_expressions": "curriculum.tasksets.algebra.rational_expressions:RATIONAL_EXPRESSIONS",
        "inequalities": "curriculum.tasksets.algebra.inequalities:INEQUALITIES",
        "recurrences": "curriculum.tasksets.algebra.recurrences:RECURRENCES",
        "exponents_and_logarithms": "curriculum.tasksets.algebra.exponents_and_logarithms:EXPONENTS_AND_LOGARITHMS",
        "complex_numbers": "curriculum.tasksets.algebra.complex_numbers:COMPLEX_NUMBERS",
        "matrix_algebra": "curriculum.tasksets.algebra.matrix_algebra:MATRIX_ALGEBRA",
        "functions": "curriculum.tasksets.algebra.functions:FUNCTIONS",
    },
    "calculus": {
        "derivatives": "curriculum.tasksets.calculus.derivatives:DERIVATIVES",
        "integrals": "curriculum.tasksets.calculus.integrals:INTEGRALS",
        "limits": "curriculum.tasksets.calculus.limits:LIMITS",
        "series": "curriculum.tasksets.calculus.series:SERIES",
        "optimization": "curriculum.tasksets.calculus.optimization:OPTIMIZATION",
    },
    "combinatorics": {
        "arrangements": "curriculum.tasksets.combinatorics.arrangements:ARRANGEMENTS",
        "probability": "curriculum.tasksets.combinatorics.probability:PROBABILITY",
        "expected_values": "curriculum.tasksets.combinatorics.expected_values:EXPECTED_VALUES",
    },
    "geometry": {
        "coordinate_geometry": "curriculum.tasksets.geometry.coordinate_geometry:COORDINATE_GEOMETRY",
        "triangles": "curriculum.tasksets.geometry.triangles:TRIANGLES",
        "circles": "curriculum.tasksets.geometry.circles:CIRCLES",
        "transformations": "curriculum.tasksets.geometry.transformations:TRANSFORMATIONS",
    },
    "data": {"tables": "curriculum.tasksets.tables:TABLES", "documents": "curriculum.tasksets.documents:DOCUMENTS"},
    "programs": {
        "programs": "curriculum.tasksets.programs.list_functions:PROGRAMS",
        "program_repair": "curriculum.tasksets.programs.repair:REPAIRS",
        "program_completion": "curriculum.tasksets.programs.completion:COMPLETIONS",
        "program_translation": "curriculum.tasksets.programs.translation:TRANSLATIONS",
        "program_tracing": "curriculum.tasksets.programs.tracing:TRACES",
    },
    "contests": {
        "contest_arrays": "curriculum.tasksets.contest.arrays:CONTEST_ARRAYS",
        "contest_choices": "curriculum.tasksets.contest.choices:CONTEST_CHOICES",
        "contest_words": "curriculum.tasksets.contest.words:CONTEST_WORDS",
        "contest_trees": "curriculum.tasksets.contest.trees:CONTEST_TREES",
        "contest_graphs": "curriculum.tasksets.contest.graphs:CONTEST_GRAPHS",
        "contest_numbers": "curriculum.tasksets.contest.numbers:CONTEST_NUMBERS",
    },
    "proofs": {
        "theorems": "curriculum.tasksets.theorems:THEOREMS",
        "disproofs": "curriculum.tasksets.disproofs:DISPROOFS",
    },
    "puzzles": {
        "knights": "curriculum.tasksets.puzzles.knights:KNIGHTS",
        "assignments": "curriculum.tasksets.puzzles.assignments:ASSIGNMENTS",
        "grids": "curriculum.tasksets.puzzles.grids:GRIDS",
        "propositions": "curriculum.tasksets.propositions:PROPOSITIONS",
        "colourings": "curriculum.tasksets.puzzles.colourings:COLOURINGS",
        "constraint_models": "curriculum.tasksets.puzzles.constraint_models:CONSTRAINT_MODELS",
        "shortest_ways": "curriculum.tasksets.puzzles.shortest_ways:SHORTEST_WAYS",
    },
    "texts": {
        "text_changes": "curriculum.tasksets.text_changes:TEXT_CHANGES",
        "calendars": "curriculum.tasksets.puzzles.calendars:CALENDARS",
        "conversions": "curriculum.tasksets.conversions:CONVERSIONS",
        "json_documents": "curriculum.tasksets.json_documents:JSON_DOCUMENTS",
        "regular_expressions": "curriculum.tasksets.programs.regular_expressions:REGULAR_EXPRESSIONS",
        "writing": "curriculum.tasksets.writing:WRITING",
        "long_form": "curriculum.checklists.long_form:LONG_FORM",
    },
    "environments": {
        "mail_search": "curriculum.tasksets.mail_search:MAIL_SEARCH",
        "hidden_rules": "curriculum.tasksets.puzzles.hidden_rules:HIDDEN_RULES",
        "research": "curriculum.tasksets.research:RESEARCH_QUESTIONS",
        "research_reports": "curriculum.tasksets.research:RESEARCH_REPORTS",
        "orchestration": "curriculum.tasksets.orchestration:TOOL_ORCHESTRATION",
        "terminal_repairs": "curriculum.tasksets.terminal_repairs:TERMINAL_REPAIRS",
    },
}
"""Built-in tasksets by domain: name to `module:object`. A new taskset adds a row."""
CALCULATORS: tuple[str, ...] = tuple(PLACES["calculator"])
"""Default tasksets: the smallest policy model can read no others."""
OUTSIDE = "plugins"
"""Domain of the tasksets of admitted distributions."""
OWN = "own"
"""Domain of an owner's tasksets, and prefix of their names."""
NAME = r"[a-z][a-z0-9_]{0,39}"
"""Pattern of the name after that prefix."""


def built_in_names() -> list[str]:
    return [name for rows in PLACES.values() for name in rows]


def taskset_names() -> list[str]:
    """Lists the built-in tasksets, and those of admitted distributions."""
    return [*built_in_names(), *names_from_outside("tasksets")]
