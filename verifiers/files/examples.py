"""Files that a check should reject. Pure: the verifier decides each."""

from __future__ import annotations

import json

from verifiers.contract import examples as e
from verifiers.files.spec import FilesSpec


def examples(spec: FilesSpec, answer: str | None, try_: e.AskVerifier) -> e.ExampleReport:
    def of(text: str, mode: str = "644") -> str:
        return json.dumps({path: {"text": text, "mode": mode} for path in spec.declared})

    inputs = [
        *e.of_the_job(spec, answer),
        e.ExampleInput("mutant", "empty files", spec, of("")),
        e.ExampleInput("mutant", "scripts that end at once and say that all is well", spec, of("exit 0\n", "755")),
        e.ExampleInput(
            "mutant", "links in place of files", spec, json.dumps({p: {"problem": "a link"} for p in spec.declared})
        ),
        e.ExampleInput("mutant", "nothing at all", spec, "{}"),
    ]
    return e.ExampleReport(tuple(try_(e.distinct(inputs))))
