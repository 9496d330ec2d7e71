"""Reports over messy files: a reader of the files alone finds them, and a careless one does not."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from random import Random

import data_cleaner
import pytest
from data_cleaner import cleaned

from curriculum.registry import make_draft
from curriculum.tasksets.data_reports import firms, messy_files
from curriculum.tasksets.data_reports.reports import DATA_REPORTS, report_of
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide

SEEDS = (120, 120, 60, 20, 6)
"""Seeds of each level."""


@pytest.mark.parametrize("level", range(DATA_REPORTS.level_count))
def test_a_reader_of_the_files_alone_finds_the_same_report(level: int) -> None:
    for seed in range(SEEDS[level]):
        draft = make_draft("data_reports", level, seed)
        text = draft.messages[-1].text
        [(first, last)] = re.findall(r"from (\S+) to (\S+) \(both", text)
        expected = json.loads(draft.answer)
        found = cleaned(draft.files, first, last)
        assert {name: found[name] for name in expected} == expected, seed
        assert set(re.findall(r"^- (\w+):", text, re.M)) == set(expected)


def test_a_report_is_four_to_ten_fields_of_five_to_twelve_files() -> None:
    drafts = [make_draft("data_reports", level, 1) for level in range(DATA_REPORTS.level_count)]
    assert [len(json.loads(draft.answer)) for draft in drafts] == [4, 6, 8, 9, 10]
    assert [len(draft.files) for draft in drafts] == [5, 6, 8, 10, 12]


def test_the_files_of_the_highest_level_have_forty_thousand_tokens() -> None:
    for seed in range(8):
        files = make_draft("data_reports", DATA_REPORTS.level_count - 1, seed).files
        assert sum(map(len, files.values())) / 4 >= 40_000


@pytest.mark.parametrize("level", [2, 4])
def test_the_answer_changes_if_any_rule_is_ignored(level: int) -> None:
    """Each sort of mess matters for most questions."""
    careless = {
        "errata": lambda files: {**files, "errata.md": re.sub(r"- (The scale|\S+ never).*", "", files["errata.md"])},
        "offsets": lambda files: {**files, "dictionary.md": re.sub(r"UTC[+-]\d+", "UTC+0", files["dictionary.md"])},
        "revisions": lambda files: {
            name: re.sub(r"(revision\W{1,3}|;)[23]\b(?=[ ,;])", r"\g<1>1", text) for name, text in files.items()
        },
    }
    for name, spoil in careless.items():
        changed = 0
        for seed in range(6):
            draft = make_draft("data_reports", level, seed)
            [(first, last)] = re.findall(r"from (\S+) to (\S+) \(both", draft.messages[-1].text)
            expected, found = json.loads(draft.answer), cleaned(spoil(dict(draft.files)), first, last)
            changed += {key: found[key] for key in expected} != expected
        assert changed >= 3, name


def test_a_report_that_is_right_in_part_fails_with_a_part_of_the_score() -> None:
    draft = make_draft("data_reports", 2, 3)
    report = json.loads(draft.answer)
    assert decide(draft.spec, json.dumps(report)).outcome is Outcome.PASS
    for name in report:
        verdict = decide(draft.spec, json.dumps({**report, name: None}))
        assert (verdict.outcome, round(verdict.score, 3)) == (Outcome.FAIL, round(1 - 1 / len(report), 3))
    assert decide(draft.spec, "{}").score == 0
    assert decide(draft.spec, json.dumps({**report, "cents": str(report["cents"])})).outcome is Outcome.FAIL


def test_a_report_follows_from_the_clean_data_whatever_mess_is_made() -> None:
    made = firms.firm(3, Random(1))
    report = report_of(made, 3)
    for seed in range(5):
        found = cleaned(messy_files.files_of(made, 3, Random(seed)), str(made.first), str(made.last))
        assert {name: found[name] for name in report} == report


def test_a_program_in_the_tasks_own_sandbox_finds_the_report_of_the_highest_level(
    tmp_path: Path, guest_roots: Path
) -> None:
    draft = make_draft("data_reports", 4, 2)
    [days] = re.findall(r"from (\S+) to (\S+) \(both", draft.messages[-1].text)
    names = tuple(draft.files)
    read = f"files = {{name: open(name).read() for name in {names!r}}}"
    code = inspect.getsource(data_cleaner).partition("import annotations")[2]
    program = f"{code}\n{read}\nprint(json.dumps(cleaned(files, *{days!r})))"
    own = BrokerSettings(state_dir=tmp_path / "state", root_dir=guest_roots, ready=1)
    with (
        Sessions(RuntimeSettings(own=own, sandboxes=1, limits=Limits(call_seconds=40.0))) as pool,
        pool.open(files={name: text.encode() for name, text in draft.files.items()}) as session,
    ):
        ran = session.run(program)
    assert json.loads(ran.output) == json.loads(draft.answer), ran
