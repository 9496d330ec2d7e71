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
        "modular_arithmetic": "curriculum.tasksets.number_theory.modular_arithmetic:MODULAR_ARITHMETIC",
        "divisibility": "curriculum.tasksets.number_theory.divisibility:DIVISIBILITY",
    },
    "hard_mathematics": {
        "composed_problems": "curriculum.tasksets.composed.problems:COMPOSED_PROBLEMS",
        "composed_by_hand": "curriculum.tasksets.composed.problems:COMPOSED_BY_HAND",
        "constructions": "curriculum.tasksets.constructions.problems:CONSTRUCTIONS",
        "constructions_by_hand": "curriculum.tasksets.constructions.problems:CONSTRUCTIONS_BY_HAND",
    },
    "data": {
        "tables": "curriculum.tasksets.tables:TABLES",
        "documents": "curriculum.tasksets.documents:DOCUMENTS",
        "data_reports": "curriculum.tasksets.data_reports.reports:DATA_REPORTS",
    },
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
        "program_theorems": "curriculum.tasksets.program_theorems.taskset:PROGRAM_THEOREMS",
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
        "published_servers": "curriculum.tasksets.orchestration:PUBLISHED_ORCHESTRATION",
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
