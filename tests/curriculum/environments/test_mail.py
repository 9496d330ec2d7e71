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
from plain_worlds import Counted, plain_world

from curriculum.contract.errors import CurriculumError
from curriculum.contract.taskset import TaskDraft
from curriculum.environments.mail.decisions import Act, decided, held
from curriculum.environments.mail.environment import MAIL, mails_of
from curriculum.environments.mail.oracle import MailOracle, dated_lines
from curriculum.registry import make_draft
from curriculum.tasksets.mail_search import MAIL_SEARCH, UNKNOWN
from curriculum.worlds.world import World
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Ground, Outcome
from verifiers.exact.spec import ExactSpec
from verifiers.registry import decide

SEEDS = 5
"""Of a level. Of 40 of each level the oracle found all, and none was guessed."""
LEVELS = range(MAIL_SEARCH.level_count)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield pool


def score(draft: TaskDraft, answer: str) -> float:
    return decide(draft.spec, answer).score


def test_who_searches_finds_the_answer_and_who_guesses_does_not(tmp_path: Path) -> None:
    """And what one has to read grows to about 40,000 tokens, four characters each."""
    right = guessed = idle = tasks = 0
    medians = []
    for level in LEVELS:
        tokens = []
        for seed in range(SEEDS):
            draft, rng = make_draft("mail_search", level, seed), Random(f"{level}/{seed}")
            call = Counted(plain_world(MAIL, draft.world, tmp_path))
            text = draft.messages[0].text
            right += score(draft, MailOracle(call).answer(text)) == 1
            tokens.append(call.read // 4)
            assert call.calls <= 0.75 * (draft.turns or 0)
            said = " ".join(call("read_email", {"number": rng.randrange(1, 400)}) for _ in range(3))
            guessed += score(draft, rng.choice(re.findall(r"[\w/-]+", said))) == 1
            idle += any(score(draft, nothing) == 1 for nothing in MAIL_SEARCH.null_answers)
            tasks += 1
        medians.append(sorted(tokens)[SEEDS // 2])
    assert right >= 0.95 * tasks
    assert guessed <= 0.02 * tasks
    assert idle <= 0.02 * tasks
    assert medians == sorted(medians)
    assert medians[0] < 1_500
    assert medians[-1] > 40_000


def test_some_messages_are_left_only_as_quotations_and_decide_as_the_others_do(tmp_path: Path) -> None:
    """Whoever reads the messages' own lines alone has another answer in some tasks."""
    others = 0
    for seed in range(6):
        draft = make_draft("mail_search", 4, seed)
        mails = [[*mail[:4], mail[4].split("\n\nOn 20")[0]] for mail in draft.world["mails"]]
        call = plain_world(MAIL, {**draft.world, "mails": mails}, tmp_path)
        others += score(draft, MailOracle(call).answer(draft.messages[0].text)) < 1
    assert others >= 2


def test_a_quoted_line_belongs_to_the_day_of_its_own_message() -> None:
    text = "new\n\nOn 2025-03-02 A B wrote:\n> old\n>\n> On 2025-03-01 C D wrote:\n> > oldest\n> later"
    more = "\n\n---- forwarded message of 2025-02-01, from C D ----\nforwarded"
    days = {line: day for day, line in dated_lines(text + more, "2025-03-03")}
    assert [days[line] for line in ("new", "old", "oldest", "later", "forwarded")] == [
        "2025-03-03", "2025-03-02", "2025-03-01", "2025-03-02", "2025-02-01",
    ]  # fmt: skip


def test_what_holds_follows_from_what_was_decided_cancelled_restored_and_taken_back() -> None:
    acts = [
        Act("2025-01-01", "set", "a"), Act("2025-01-02", "set", "b"), Act("2025-01-03", "talk", "c"),
        Act("2025-01-04", "cancel"), Act("2025-01-05", "restore", back="2025-01-03"), Act("2025-01-06", "set", "d"),
        Act("2025-01-07", "retract", back="2025-01-06"), Act("2025-01-08", "retract", back="2025-01-02"),
    ]  # fmt: skip
    held_on = [held(acts, f"2025-01-0{day}") for day in range(9)]
    assert held_on == ["", "a", "b", "b", "", "b", "d", "b", "a"], "what is taken back counts as never written"
    assert decided(acts, "2025-01-06") == {"a", "b", "d"}
    assert decided(acts) == {"a"}
    assert held(acts[::-1]) == "a"


def test_the_same_is_found_in_a_sandbox_and_nothing_there_was_changed(pool: SessionPool) -> None:
    for level in (0, 4):
        draft = make_draft("mail_search", level, level + 1)
        with World.open(pool, MAIL, draft.world) as world:
            before = world.digest()
            answer = MailOracle(lambda tool, arguments, world=world: world.call(tool, arguments).text).answer(
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
    ("read_email", {"number": 1, "part": 9}, "has parts 1 to 1"),
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
        assert world.call("read_email", {"number": 1}).text.startswith("message 1, part 1 of 1\n")


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
