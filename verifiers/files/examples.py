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
        e.ExampleInput("mutant", "scripts that exit immediately with success", spec, of("exit 0\n", "755")),
        e.ExampleInput(
            "mutant", "links instead of files", spec, json.dumps({p: {"problem": "a link"} for p in spec.declared})
        ),
        e.ExampleInput("mutant", "empty", spec, "{}"),
    ]
    return e.ExampleReport(tuple(try_(e.distinct(inputs))))
