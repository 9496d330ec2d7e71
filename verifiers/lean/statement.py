"""The trusted side: what a spec's Lean text says, made into files that are compiled without the submission.

The trusted file is the text as it is written, up to the end of its theorem, which has a secret mark in the place of its
name's last part: no submission can name it, declare it or make notation of it, and all other names mean what they mean
under its own, since Lean looks names up in the namespaces of the name that is declared, `A.B` for `A.B.target`. The
check file imports it beside what the submission declares, and asks for a proof of its type.

Where the text declares anything before the theorem, a submission imports the same file without the theorem: the file of
definitions. Both are the module `AssayStatement`, so that every name is the same in both, also those that Lean makes of
the module's. In the check there is only the trusted one, and the submission's names are its names.
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
    """A spec's text, read. Places are characters of `source`."""

    source: str
    """The text, without a byte order mark and with Lean's ends of lines."""
    full_name: str
    """Of the theorem that a submission has to declare."""
    says: tuple[str, ...]
    """The words of its signature."""
    imports: tuple[str, ...]
    imports_end: int
    header: StatementContext
    """What stands between the imports and the theorem."""
    theorem: Command
    name_at: int
    """Where the theorem's name ends."""
    says_at: int
    """Where its signature ends."""
    missing: str
    """What its proof lacks: ` := sorry`, ` sorry` or nothing."""

    @property
    def defines(self) -> bool:
        return self.header.declares

    @property
    def signature(self) -> str:
        """The theorem up to its proof, with what is attached to it."""
        return self.source[self.theorem.start : self.says_at]

    @property
    def _last(self) -> str:
        return commands.parts_of(self.full_name)[-1]

    def _marked(self, mark: str) -> str:
        return self.full_name.removesuffix(self._last) + mark

    def unmarked(self, text: str, mark: str) -> str:
        """What Lean says, for others' eyes: with the theorem's own name in it."""
        return text.replace(mark, self._last)

    def trusted_file(self, mark: str) -> str:
        """Its source, for a secret `mark` that is an identifier.

        The theorem's own attributes are left away: they say nothing of what it states, and some make names of its name.
        """
        edits = [*self._visible(), *self._attributes(), (self.name_at - len(self._last), self.name_at, mark)]
        return self._import_lines + edited(self.source, self.imports_end, self.theorem.end, edits) + self.missing + "\n"

    def definitions_file(self) -> str:
        """The same without the theorem."""
        edits = self._visible()
        for command in self.header.declared():
            if command.keyword == "instance":  # it is local to the statement's file, and this is another one
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
        """Nothing before the theorem is private, so that a submission can name it."""
        return [
            (word.start, word.end, "")
            for command in self.header.commands
            for word in command.words[: command.key]
            if word.text == "private"
        ]

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
