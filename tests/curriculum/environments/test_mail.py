"""The mailbox: what is asked is found with its tools by whoever searches, and by nobody who does not."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mail_oracle import Oracle

from curriculum.contract.errors import CurriculumError
from curriculum.contract.taskset import TaskDraft
from curriculum.environments.mail.environment import MAIL, mails_of
from curriculum.registry import make_draft
from curriculum.tasksets.mail_search import MAIL_SEARCH, UNKNOWN
from curriculum.worlds.world import World
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Ground, Outcome
from verifiers.exact.spec import ExactSpec
from verifiers.registry import decide

SEEDS = 6
"""Of a level. Of 40 of each level the oracle found all, and none was guessed."""
LEVELS = range(MAIL_SEARCH.level_count)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield pool


def score(draft: TaskDraft, answer: str) -> float:
    return decide(draft.spec, answer).score


class HostWorld:
    """The same program without a sandbox, which starts in no time."""

    def __init__(self, setup: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, data in MAIL.files(setup).items():
            (folder / name).write_bytes(data)
        monkeypatch.chdir(folder)
        self._names: dict[str, Any] = {"ToolError": ValueError, "SETUP": setup}
        exec(compile(MAIL.program, "world.py", "exec"), self._names)

    def call(self, tool: str, arguments: dict[str, object]) -> str:
        return str(self._names["call"](tool, arguments))


def test_who_searches_finds_the_answer_and_who_guesses_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = guessed = idle = tasks = 0
    for level in LEVELS:
        for seed in range(SEEDS):
            draft, rng = make_draft("mail_search", level, seed), Random(f"{level}/{seed}")
            world = HostWorld(draft.world, tmp_path, monkeypatch)
            text = draft.messages[0].text
            right += score(draft, Oracle(world.call).answer(text)) == 1
            said = " ".join(world.call("read_email", {"number": rng.randrange(1, 400)}) for _ in range(3))
            guessed += score(draft, rng.choice(re.findall(r"[\w-]+", said))) == 1
            idle += any(score(draft, nothing) == 1 for nothing in MAIL_SEARCH.null_answers)
            tasks += 1
    assert right >= 0.95 * tasks
    assert guessed <= 0.02 * tasks
    assert idle <= 0.02 * tasks


def test_the_same_is_found_in_a_sandbox_and_nothing_there_was_changed(pool: SessionPool) -> None:
    for level in (0, 4):
        draft = make_draft("mail_search", level, level + 1)
        with World.open(pool, MAIL, draft.world) as world:
            before = world.digest()
            answer = Oracle(lambda tool, arguments, world=world: world.call(tool, arguments).text).answer(
                draft.messages[0].text
            )
            assert score(draft, answer) == 1, draft.messages[0].text
            assert world.digest() == before


HOSTILE = (
    ("search_inbox", {"keywords": 'a" OR "b* NEAR( ^x -y col:z'}, ""),
    ("search_inbox", {"keywords": "'; DROP TABLE mail; --"}, ""),
    ("search_inbox", {"keywords": "   "}, "at least one word"),
    ("search_inbox", {"keywords": "word " * 300}, "at most 12 words"),
    ("search_inbox", {"keywords": "x", "after": "yesterday"}, "is a date"),
    ("search_inbox", {"keywords": "x", "limit": 1000}, "limit"),
    ("read_email", {"number": 0}, "number"),
    ("read_email", {"number": 2**53}, "there is no message"),
    ("read_email", {"number": "1 OR 1=1"}, "number"),
    ("read_email", {"number": 1, "path": "/etc/passwd"}, "no argument"),
)


def test_hostile_arguments_are_told_and_the_mailbox_stays_as_it_is(pool: SessionPool) -> None:
    draft = make_draft("mail_search", 0, 0)
    with World.open(pool, MAIL, draft.world) as world:
        before = world.digest()
        for tool, arguments, said in HOSTILE:
            reply = world.call(tool, arguments)
            assert reply.failed is bool(said), (arguments, reply.text)
            assert said in reply.text, (arguments, reply.text)
        assert world.digest() == before
        assert world.call("read_email", {"number": 1}).text.startswith("message 1\n")


def test_who_abstains_earns_less_than_the_right_and_more_than_the_wrong() -> None:
    for level in LEVELS:
        for seed in range(SEEDS):
            draft = make_draft("mail_search", level, seed)
            assert 0 == score(draft, "B-101x") < score(draft, f" {UNKNOWN}\n") < score(draft, draft.answer) == 1
            verdict = decide(draft.spec, UNKNOWN)
            assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.ABSTAINED)


def test_a_spec_without_abstention_is_the_data_that_it_was_before_there_were_any() -> None:
    assert ExactSpec(expected="6").model_dump() == {"kind": "exact", "expected": "6"}
    assert ExactSpec(expected="6").model_dump_json() == '{"kind":"exact","expected":"6"}'
    both = ExactSpec(expected=UNKNOWN, abstention=UNKNOWN)
    assert ExactSpec.model_validate(both.model_dump()) == both
    assert decide(both, UNKNOWN).outcome is Outcome.PASS


def test_no_other_message_names_what_is_asked_about() -> None:
    for level in (0, 2):
        draft = make_draft("mail_search", level, 3)
        own = {tuple(mail) for mail in draft.world["mails"]}
        others = [mail for mail in mails_of(draft.world) if tuple(mail) not in own]
        assert len(others) >= draft.world["messages"] - len(own)
        texts = [" ".join(mail) for mail in others]
        assert not any(re.search(rf"\b{name}\b", text) for name in draft.world["reserved"] for text in texts)


def test_the_same_setup_gives_the_same_bytes_in_another_process() -> None:
    draft = make_draft("mail_search", 1, 5)
    script = (
        "import hashlib; from curriculum.registry import make_draft\n"
        "from curriculum.environments.mail.environment import MAIL\n"
        "print(hashlib.sha256(MAIL.files(make_draft('mail_search', 1, 5).world)['mails.jsonl']).hexdigest())"
    )
    environ = {**os.environ, "PYTHONHASHSEED": "7"}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environ)
    assert ran.stdout.strip() == hashlib.sha256(MAIL.files(draft.world)["mails.jsonl"]).hexdigest(), ran.stderr


@pytest.mark.parametrize("setup", [{}, {"seed": "x", "messages": 1, "reserved": [], "mails": []}, {"seed": 1}])
def test_a_setup_that_is_none_is_refused_with_what_it_should_have(setup: dict[str, Any]) -> None:
    with pytest.raises(CurriculumError) as met:
        MAIL.files(setup)
    assert "`mails`" in met.value.hint
