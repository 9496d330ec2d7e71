"""The trusted side: what a spec's Lean text says, made into files that are compiled without the submission.

`AssayDefinitions` holds the statement's own definitions, when it has any; a submission imports it and so shares them.
`AssayStatement` holds the theorem with a secret mark in the place of its name's last part, so that no submission can
name it, declare it or make notation of it, and all other names mean what they mean under its own: Lean looks names up
in the namespaces of the name that is declared, `A.B` for `A.B.target`. The check file imports it beside the submission
and asks for a proof of its type.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from verifiers.contract.errors import SpecError
from verifiers.lean import commands
from verifiers.lean.lexer import TokenKind, code, words
from verifiers.lean.spec import LeanSpec

DEFINITIONS, STATEMENT, SUBMISSION, CHECK = "AssayDefinitions", "AssayStatement", "AssaySubmission", "AssayCheck"
HINT = "A statement is a Lean file whose last declaration is `theorem name … : … := sorry`."


@dataclass(frozen=True)
class LeanStatement:
    """A spec's text, read. `files` are its modules in the order in which they are compiled."""

    full_name: str
    """Of the theorem that a submission has to declare."""
    says: tuple[str, ...]
    """The words of its signature."""
    imports: tuple[str, ...]
    header: str
    """Its text between the imports and the theorem."""
    context: str
    """What of the header a submission's file begins with."""
    defines: bool
    text: str
    """From the theorem on, without the imports."""
    name_at: int
    """Where the theorem's name ends in `text`."""
    says_at: int
    """Where its signature ends in `text`."""
    proved: bool
    """Whether it has a proof, or `sorry`, in `text`."""

    @property
    def _last(self) -> str:
        return commands.parts_of(self.full_name)[-1]

    def _marked(self, mark: str) -> str:
        return self.full_name.removesuffix(self._last) + mark

    def unmarked(self, text: str, mark: str) -> str:
        """What Lean says, for others' eyes: with the theorem's own name in it."""
        return text.replace(mark, self._last)

    def files(self, mark: str) -> list[tuple[str, str]]:
        """Module and source, for a secret `mark` that is an identifier."""
        text = self.text
        if not self.proved:
            text = text[: self.says_at] + " := sorry" + text[self.says_at :]
        text = text[: self.name_at - len(self._last)] + mark + text[self.name_at :]
        lines = "".join(f"import {module}\n" for module in self.imports)
        if not self.defines:
            return [(STATEMENT, lines + self.header + text)]
        definitions = lines + self.header
        return [(DEFINITIONS, definitions), (STATEMENT, f"{lines}import {DEFINITIONS}\n{self.context}\n{text}")]

    def check_file(self, mark: str) -> str:
        """Line 1 to 2 import, line 3 is the theorem, line 4 asks for its axioms."""
        return (
            f"import {STATEMENT}\nimport {SUBMISSION}\n"
            f"theorem {mark}.check : type_of% @{self._marked(mark)} := @{self.full_name}\n"
            f"#print axioms {mark}.check\n"
        )

    def added_check_file(self, mark: str) -> str:
        """The same where both are there already, without imports."""
        return self.check_file(mark).split("\n", 2)[2]

    def rest_file(self, mark: str) -> str:
        """Asks what the statement alone rests on."""
        return (
            f"import {STATEMENT}\n\n"
            f"theorem {mark}.check (_ : type_of% @{self._marked(mark)}) : True := True.intro\n"
            f"#print axioms {mark}.check\n"
        )


def digest(spec: LeanSpec) -> str:
    return hashlib.sha256(spec.statement.encode()).hexdigest()


def read_statement(spec: LeanSpec) -> LeanStatement:
    """Raises SpecError for a text without a theorem, or with something in it that nothing could be proved from."""
    every = list(words(spec.statement))
    if any(word.doubtful for word in every):
        raise SpecError("the statement can be read in two ways", hint="Put a space before its comments and quotations.")
    header = commands.imports(code(spec.statement))
    if header.odd:
        raise SpecError(f"a statement cannot begin with `{header.odd}`", hint="Only plain imports are possible.")
    if any(word.kind is TokenKind.NAME and word.text == "axiom" for word in every):
        raise SpecError("a statement cannot have axioms", hint="Make them hypotheses of the theorem.")
    found = commands.theorems(spec.statement)
    if not found:
        raise SpecError("the statement has no theorem", hint=HINT)
    last = found[-1]
    if last.private:
        raise SpecError("the statement's theorem is private", hint="No other file could name it.")
    if ":" not in last.says:
        raise SpecError("the statement's theorem has no type", hint=HINT)
    context, declares = commands.context(spec.statement[header.end : last.start])
    return LeanStatement(
        full_name=last.full_name,
        says=last.says,
        imports=header.modules,
        header=spec.statement[header.end : last.start],
        context=context if declares else spec.statement[header.end : last.start],
        defines=declares,
        text=spec.statement[last.start :],
        name_at=last.name.end - last.start,
        says_at=last.signature[-1].end - last.start,
        proved=last.proved,
    )
