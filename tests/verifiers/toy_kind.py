"""A toy kind, as somebody would add it: the files of its folder, and its row."""

from __future__ import annotations

FILES = {
    "__init__.py": '"""Texts written backwards."""\n',
    "kind.py": """
from verifiers.contract.kinds import Kind, KindOption, Lazy, SubmissionOption

BACKWARDS = Kind(
    name="backwards",
    about="Is this the word, written backwards? 0 yes, 1 no.",
    job="riddle",
    spec=Lazy("verifiers.backwards.spec:BackwardsSpec"),
    verifier=Lazy("verifiers.backwards.verifier:BackwardsVerifier"),
    revision="1",
    preload="verifiers.backwards",
    explain=Lazy("verifiers.backwards.verifier:explain"),
    parts=Lazy("verifiers.backwards.verifier:parts"),
    examples=Lazy("verifiers.backwards.verifier:examples"),
    options=(KindOption(flag="--word", metavar="TEXT", help="The word."),),
    submission=SubmissionOption(flag="--answer", takes="text", metavar="TEXT", help="What is checked."),
)
""",
    "spec.py": """
from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecModel


class BackwardsSpec(SpecModel):
    kind: Literal["backwards"] = "backwards"
    word: str = Field(min_length=1)

    def summary(self) -> str:
        return f"{self.word}, backwards"
""",
    "verifier.py": """
from verifiers.backwards.kind import BACKWARDS
from verifiers.contract.errors import SpecError
from verifiers.contract.examples import ExampleInput, ExampleReport
from verifiers.contract.statement import Verified, decided
from verifiers.contract.verdict import Ground, judged


class BackwardsVerifier:
    name = BACKWARDS.name
    version = BACKWARDS.version

    def check(self, spec, *, prove=False):
        if spec.word == spec.word[::-1]:
            raise SpecError("the word is its own answer", hint="Take another word.")

    def verify(self, spec, submission):
        ground = Ground.PROVED if submission.strip() == spec.word[::-1] else Ground.REFUTED
        return judged(ground, f"compared with {spec.word[::-1]}", {}, self.name, self.version)


def explain(spec):
    yield f"The answer has to be this word from its end to its beginning: {spec.word}"


def parts(spec, verdict):
    return Verified([decided(verdict, f"that it is {spec.word} backwards")], [])


def examples(spec, answer, try_):
    inputs = [
        ExampleInput("example", "the word, turned round", spec, spec.word[::-1]),
        ExampleInput("mutant", "the word itself", spec, spec.word),
    ]
    return ExampleReport(tuple(try_(inputs)))
""",
    "canaries/index.toml": """
[specs.drawer]
word = "drawer"

[[case]]
name = "turned-round"
spec = "drawer"
text = "reward"
honest = true

[[case]]
name = "the-word-itself"
spec = "drawer"
text = "drawer"
why = "nothing was done"
""",
}
ROW = '    "verifiers.backwards.kind:BACKWARDS",\n'
"""What the registry gets."""
