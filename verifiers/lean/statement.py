"""The trusted side: files made from a spec's Lean text and compiled without the submission.

The trusted file is the text up to the end of its theorem, with a secret mark replacing the last part of the theorem's
name: no submission can name it, declare it or make notation of it. All other names keep their meaning, since Lean looks
names up in the namespaces of the declared name, `A.B` for `A.B.target`. The check file imports it beside the
submission's declarations and asks for a proof of its type.

If the text declares anything before the theorem, a submission imports the same file without the theorem: the file of
definitions. Both are the module `AssayStatement`, so that every name is the same in both, including those that Lean
derives from the module's. In the check only the trusted one exists, and the submission's names refer to it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from verifiers.contract.errors import SpecError
from verifiers.lean.reading import commands
from verifiers.lean.reading.commands import Command
from verifiers.lean.reading.context import StatementContext, header_of
from verifiers.lean.reading.lexer import Edit, LeanToken, TokenKind, edited, normalized, turn, without_room, words
from verifiers.lean.spec import LeanSpec

STATEMENT, SUBMISSION, CHECK = "AssayStatement", "AssaySubmission", "AssayCheck"
HINT = "A statement is a Lean file whose last declaration is `theorem name … : … := sorry`."


@dataclass(frozen=True)
class LeanStatement:
    """A Lean spec's parsed statement. Positions are characters of `source`."""

    source: str
    """Text without a byte order mark and with normalized line ends."""
    full_name: str
    """Full name of the theorem that a submission must declare."""
    says: tuple[str, ...]
    """Words of the theorem's signature."""
    imports: tuple[str, ...]
    imports_end: int
    header: StatementContext
    """Commands between the imports and the theorem."""
    theorem: Command
    name_at: int
    """End of the theorem's name."""
    says_at: int
    """End of its signature."""
    missing: str
    """Missing part of its proof: ` := sorry`, ` sorry` or nothing."""

    @property
    def defines(self) -> bool:
        return self.header.declares

    @property
    def signature(self) -> str:
        """Text of the theorem up to its proof, with attached commands."""
        return self.source[self.theorem.start : self.says_at]

    @property
    def _last(self) -> str:
        return commands.parts_of(self.full_name)[-1]

    def _marked(self, mark: str) -> str:
        return self.full_name.removesuffix(self._last) + mark

    def unmarked(self, text: str, mark: str) -> str:
        """Replaces the mark in Lean's output by the theorem's own name."""
        return text.replace(mark, self._last)

    def trusted_file(self, mark: str) -> str:
        """Returns the statement's Lean source with its theorem renamed to a secret `mark`, which is an identifier.

        The theorem's own attributes are dropped: they do not affect its statement, and some derive names from its name.
        """
        edits = [*self._visible(), *self._attributes(), (self.name_at - len(self._last), self.name_at, mark)]
        return self._import_lines + edited(self.source, self.imports_end, self.theorem.end, edits) + self.missing + "\n"

    def definitions_file(self) -> str:
        """Returns the statement's Lean source without the theorem."""
        edits = self._visible()
        for command in self.header.declared():
            if command.keyword == "instance":  # local to the statement's file, but needed in this one
                edits += [(word.start, word.end, "") for word in command.words[: command.key] if word.text == "local"]
        end = self.header.commands[-1].end if self.header.commands else self.imports_end
        return self._import_lines + edited(self.source, self.imports_end, end, edits) + "\n"

    @property
    def _import_lines(self) -> str:
        return "".join(f"import {module}\n" for module in self.imports)

    def _attributes(self) -> list[Edit]:
        found: list[Edit] = []
        depth = 0
        for word in self.theorem.words[self.theorem.attached : self.theorem.key]:
            if depth or word.kind is TokenKind.ATTRIBUTE:
                depth += turn(word)
                found.append((word.start, word.end, ""))
        return found

    def _visible(self) -> list[Edit]:
        """Returns edits that remove `private` before the theorem, so that a submission can use every name."""
        return [
            (word.start, word.end, "")
            for command in self.header.commands
            for word in command.words[: command.key]
            if word.text == "private"
        ]

    def check_file(self, mark: str) -> str:
        """Returns Lean source that checks the submitted theorem: lines 1, 2: imports; 3: the theorem; 4: its axioms."""
        return (
            f"import {STATEMENT}\nimport {SUBMISSION}\n"
            f"theorem {mark}.check : type_of% @{self._marked(mark)} := @{self.full_name}\n"
            f"#print axioms {mark}.check\n"
        )

    def added_check_file(self, mark: str) -> str:
        """Returns the source of `check_file` without imports, for an environment that already has both files."""
        return self.check_file(mark).split("\n", 2)[2]

    def rest_file(self, mark: str) -> str:
        """Returns Lean source that prints the axioms of the statement alone."""
        return (
            f"import {STATEMENT}\n\n"
            f"theorem {mark}.check (_ : type_of% @{self._marked(mark)}) : True := True.intro\n"
            f"#print axioms {mark}.check\n"
        )


def digest(spec: LeanSpec) -> str:
    return hashlib.sha256(spec.statement.encode()).hexdigest()


def read_statement(spec: LeanSpec) -> LeanStatement:
    """Parses a Lean spec's statement. Raises SpecError without a theorem, or if nothing could be proved of it."""
    text = normalized(spec.statement)
    every = list(words(text))
    if any(word.doubtful for word in every):
        raise SpecError("the statement can be read in two ways", hint="Put a space before its comments and quotations.")
    text = commands.as_plain_file(text, without_room(every))
    code = without_room(words(text))
    imports = commands.imports(code)
    if imports.odd:
        raise SpecError(f"a statement cannot begin with `{imports.odd}`", hint="Only plain imports are possible.")
    if any(word.text == "axiom" for word in code):
        raise SpecError("a statement cannot have axioms", hint="Make them hypotheses of the theorem.")
    code = [word for word in code if word.start >= imports.end]
    found = commands.theorems(text, code)
    if not found or not commands.parts_of(found[-1].full_name):
        raise SpecError("the statement has no theorem", hint=HINT)
    last = found[-1]
    if last.private:
        raise SpecError("the statement's theorem is private", hint="No other file could name it.")
    if ":" not in last.says:
        raise SpecError("the statement's theorem has no type", hint=HINT)
    every_command = commands.commands(text, code)
    place = next(at for at, command in enumerate(every_command) if command.end >= last.name.end)
    theorem = every_command[place]
    return LeanStatement(
        source=text,
        full_name=last.full_name,
        says=last.says,
        imports=imports.modules,
        imports_end=imports.end,
        header=header_of(every_command[:place]),
        theorem=theorem,
        name_at=last.name.end,
        says_at=last.signature[-1].end,
        missing=_missing(theorem.words, proved=last.proved),
    )


def _missing(theorem: tuple[LeanToken, ...], *, proved: bool) -> str:
    if not proved:
        return " := sorry"
    return " sorry" if theorem[-1].text in (":=", "by") else ""
