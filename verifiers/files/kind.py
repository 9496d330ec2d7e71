"""Kind `files`: declared files with the right content and the right behaviour in a fresh sandbox."""

from __future__ import annotations

from verifiers.contract.kinds import AnswerForm, Kind, Lazy, always

FILES = Kind(
    name="files",
    about="Do these files have the required content and behaviour? 0 yes, 1 no.",
    job="files",
    spec=Lazy("verifiers.files.spec:FilesSpec"),
    verifier=Lazy("verifiers.files.verifier:FilesVerifier"),
    revision="2",
    seconds=30.0,
    runs=True,
    tests_decide=True,
    conducted=always,
    conductor=Lazy("verifiers.files.verifier:conductor"),
    check=Lazy("verifiers.files.verifier:check"),
    explain=Lazy("verifiers.files.explain:explain"),
    parts=Lazy("verifiers.files.explain:parts"),
    examples=Lazy("verifiers.files.explain:examples"),
    answer_form=lambda _spec: AnswerForm.WORLD,
    asks_for=lambda _spec: "",
    suffix=".json",
)
