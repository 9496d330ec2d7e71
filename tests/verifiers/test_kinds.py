"""The kinds of checks: one object each, light to import, with all that anybody asks of them."""

from __future__ import annotations

import subprocess
import sys

from tables import table

from verifiers.contract.kinds import Kind, Lazy
from verifiers.contract.verdict import Ground, Judgement
from verifiers.registry import KINDS, kind_named


def test_every_kind_has_a_name_of_its_own() -> None:
    assert [kind.name for kind in KINDS.values()] == list(KINDS)
    assert all(kind_named(kind.name) is kind for kind in KINDS.values())


@table("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_and_its_spec_and_verifier_have_the_same_name(kind: Kind) -> None:
    assert kind.spec.load().model_fields["kind"].default == kind.name
    assert (kind.verifier.load().name, kind.verifier.load().version) == (kind.name, kind.version)


def test_a_kind_is_made_without_anything_heavy() -> None:
    script = (
        "import sys, verifiers.contract.kinds, verifiers.lean.kind, verifiers.answers.kind\n"
        "print('pydantic' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert found.stdout.strip() == "False", found.stderr


def test_everything_that_a_kind_names_is_there() -> None:
    for kind in KINDS.values():
        named = [value for value in vars(kind).values() if isinstance(value, Lazy)]
        named += kind.proposers.values()
        named += [one.read for one in (*kind.options, *kind.submit) if one.read is not None]
        named += [kind.submission.default] if kind.submission.default is not None else []
        assert all(callable(one.load()) for one in named), kind.name


def test_only_what_is_proved_or_tested_passes_and_nothing_suspected_does() -> None:
    passing = {ground for ground in Ground if Judgement(ground, "", {}).verdict("x", "1").passed}
    assert passing == {Ground.PROVED, Ground.TESTED}
    assert not any(Judgement(ground, "", {}, suspected=True).verdict("x", "1").passed for ground in Ground)
