"""A taskset whose checks hold is certified, and one whose checks do not is not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from toy_worlds import BROKEN, TOYS, ToyEnvironment

from appliance.worker.setup.cycle_setup import left_out
from curriculum.catalog import Catalog
from curriculum.certification.certificate import Certificate, made_by, shipped
from curriculum.certification.certify import HACK, NULL, ONLY_FOREIGN, REFERENCE, certify
from curriculum.certification.worlds import plain_arguments, tried_in, try_worlds
from curriculum.contract.errors import CurriculumError, ExhaustedError
from curriculum.contract.task import Split, asked
from curriculum.contract.taskset import TaskDraft
from curriculum.environments import ENVIRONMENTS
from curriculum.environments.foreign import FOREIGN_SPEC
from curriculum.own.rows import OwnRow, split_of_question, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.registry import BUILT_IN, DOMAINS, TASKSETS
from curriculum.sealed import TaskStream
from curriculum.worlds.tool_schema import fault_of
from runtime.errors import MACHINE_ERRORS, SandboxError
from runtime.sandbox import Session, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.registry import decide
from verifiers.registry.spec import Spec

BY_CHANCE = ToyEnvironment(
    "one by chance", "import os\ndrawn = os.urandom(8).hex()\n\ndef call(tool, arguments):\n    return drawn\n"
)


class Sharing:
    """A pool whose sessions of one caller are all the same one."""

    def __init__(self, pool: SessionPool) -> None:
        self.pool, self.limits = pool, pool.limits
        self.session: Session | None = None

    def open(self, **how: object) -> Session:
        self.session = self.session or self.pool.open(**how)  # type: ignore[arg-type]
        return self.session


@dataclass
class Words:
    """Asks for a word; `answers` is how many there are, `right` whether the reference is."""

    answers: int = 10_000
    right: bool = True
    leaks: bool = False
    version: int = 1
    name: str = "words"
    level_count: int = 2
    topics: tuple[str, ...] = ("word",)
    null_answers: tuple[str, ...] = ("1",)

    def draft(self, level: int, rng: Random) -> TaskDraft:
        word = str(1 + rng.randrange(self.answers))
        text = f"say {word}" if self.leaks else f"say the word of {rng.random()}"
        spec = ExactSpec(expected=text if self.leaks else word)
        answer = spec.expected if self.right else "another"
        return TaskDraft(
            topic="word", key=f"words:{word} {rng.random()}", messages=asked(text), spec=spec, answer=answer
        )

    def unsolvable(self, draft: TaskDraft, number: int) -> ExactSpec:
        return ExactSpec(expected=f"not {number}")

    def missing(self) -> str:
        return ""


def judge(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
    return [decide(spec, answer) for spec, answer in pairs]


def certified(taskset: Words, **options: object) -> Certificate:
    return certify(Catalog({"toys": {"words": taskset}}), "words", judge, seeds=60, **options)  # type: ignore[arg-type]


def test_a_taskset_whose_checks_hold_is_certified() -> None:
    found = certified(Words())
    assert found.holds, found.faults
    assert (found.tasks, found.agents[REFERENCE].passed) == (120, 60)
    assert all(one.passed == 0 for name, one in found.agents.items() if name not in (REFERENCE, NULL))
    assert found.made.startswith("1:")


def test_a_reference_that_does_not_pass_is_a_fault() -> None:
    assert "60 of 60 reference answers do not pass" in certified(Words(right=False)).faults[0]


def test_an_agent_that_repeats_the_question_and_passes_is_a_fault() -> None:
    found = certified(Words(leaks=True))
    assert not found.holds
    assert any("'echo' passes 60 of 60" in fault for fault in found.faults)


def test_where_there_are_few_answers_a_guess_is_at_chance_and_reported_so() -> None:
    found = certified(Words(answers=6))
    assert found.holds, found.faults
    assert found.agents[NULL].rate > 0.1
    assert found.agents[NULL].chance >= 0.16
    assert found.agents[HACK].chance == 0


@pytest.mark.parametrize("answers", [1, 2, 3])
def test_a_topic_in_which_one_answer_is_often_right_is_a_fault(answers: int) -> None:
    faults = certified(Words(answers=answers)).faults
    assert all(fault.startswith(("level 0, topic word:", "level 1, topic word:")) for fault in faults), faults
    assert len(faults) == 2
    assert "so it passes without work" in faults[0]


@dataclass
class Topics(Words):
    """Two topics: one of numbers, and one that always has the same answer, or asks few questions."""

    topics: tuple[str, ...] = ("many", "few")
    alike: bool = True

    def draft(self, level: int, rng: Random) -> TaskDraft:
        topic, number = rng.choice(self.topics), rng.randrange(10**6)
        few = topic == "few"
        word = f"{rng.choice((3, 5))}" if few and self.alike else str(10**7 + 3 * number)
        asks = number if self.alike or not few else number % 40
        return TaskDraft(
            topic=topic, key=f"words {topic}:{asks}", messages=asked(f"say {asks}"),
            spec=ExactSpec(expected=word), answer=word,
        )  # fmt: skip


def test_one_topic_of_a_level_is_a_fault_though_the_level_as_a_whole_is_none() -> None:
    faults = certified(Topics()).faults
    assert sorted(fault.partition(":")[0] for fault in faults) == ["level 0, topic few", "level 1, topic few"]


def test_a_topic_with_few_different_questions_is_a_fault() -> None:
    faults = certified(Topics(alike=False)).faults
    assert len(faults) == 2, faults
    assert all("topic few: about" in fault and "too few for three splits" in fault for fault in faults)


def test_other_bytes_in_another_process_are_a_fault() -> None:
    assert "another process makes different tasks" in certified(Words(), elsewhere=lambda: "1:other").faults[0]


def of_rows(count: int, split: Split) -> Catalog:
    """An owner's taskset of so many questions, all of that split."""
    asked_so = (f"say the word number {at}" for at in range(200))
    questions = [text for text in asked_so if split_of_question(text) is split][:count]
    rows = [
        OwnRow(question=text, spec=ExactSpec(expected=text[::-1]), answer=text[::-1], origin="w") for text in questions
    ]
    content = OwnContent(name="few", added="", rows=with_levels(rows), digest="0" * 64)
    return Catalog({}).with_domain("own", [OwnTaskset(content)])


def test_few_rows_of_an_owner_are_certified_though_some_levels_have_none() -> None:
    found = certify(of_rows(3, Split.TRAIN), "own/few", judge, seeds=5)
    assert found.holds, found.faults
    assert left_out(["own/few", "digits"], {"own/few": found.made}, catalog=with_code(of_rows(3, Split.TRAIN))) == {}


def test_rows_that_are_all_sealed_are_evaluated_and_hinder_no_training() -> None:
    catalog = with_code(of_rows(3, Split.SEALED))
    found = certify(catalog, "own/few", judge, seeds=8)
    assert found.holds, found.faults
    assert left_out(["own/few", "digits"], {"own/few": found.made}, catalog=catalog) == {}
    tasks = TaskStream(Split.TRAIN, 1, tasksets=("own/few", "digits"), catalog=catalog).tasks(0, 6)
    assert {task.taskset for task in tasks} == {"digits"}


def with_code(catalog: Catalog) -> Catalog:
    return BUILT_IN.with_domain("own", list(catalog.domains["own"].values()))


def test_a_level_of_the_code_without_a_task_is_a_fault() -> None:
    @dataclass
    class Gap(Words):
        def draft(self, level: int, rng: Random) -> TaskDraft:
            if level == 1:
                raise ExhaustedError("none", hint="")
            return super().draft(level, rng)

    assert certified(Gap()).faults == ("level 1 has no task",)


def test_what_cannot_be_checked_here_is_not_certified() -> None:
    @dataclass
    class Missing(Words):
        def missing(self) -> str:
            return "no Lean"

    with pytest.raises(CurriculumError, match="no Lean"):
        certified(Missing())


def test_every_taskset_of_the_code_ships_with_a_certificate_and_with_no_other() -> None:
    assert shipped().keys() == TASKSETS.keys()


def test_what_is_not_certified_as_it_is_now_is_left_out_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOMAINS, "toys", {"words": Words()})  # type: ignore[arg-type]
    assert "assay curriculum certify words" in left_out(["words", "digits"], {})["words"]
    made = made_by(BUILT_IN, "words")
    assert left_out(["words", "digits"], {"words": made}) == {}
    monkeypatch.setitem(DOMAINS, "toys", {"words": Words(version=2)})  # type: ignore[arg-type]
    assert "words" in left_out(["words", "digits"], {"words": made})
    assert left_out(["digits"], {}) == {}


def test_a_certificate_is_read_back_as_it_was_written() -> None:
    found = certified(Words())
    assert Certificate.model_validate(json.loads(found.model_dump_json())) == found


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, sandboxes=16)) as pool:
        yield pool


def all_are_closed(pool: SessionPool, seconds: float = 60.0) -> None:
    """Sandboxes end behind who closes them."""
    deadline = time.monotonic() + seconds
    while pool.stats()["sessions"]:
        assert time.monotonic() < deadline, f"{pool.stats()['sessions']:.0f} sandboxes stay open"
        time.sleep(0.02)


def of_world(name: str) -> TaskDraft:
    spec = ExactSpec(expected="1")
    return TaskDraft(
        topic="t",
        key=name,
        messages=asked("q"),
        spec=spec,
        answer="1",
        environment=name,
        world={"start": 5, "sign": "x"},
    )


def test_worlds_are_equal_apart_and_whole_after_a_flood(pool: SessionPool) -> None:
    assert try_worlds([of_world("counter")], TOYS, pool) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_world_that_breaks_is_a_sentence_in_the_report_and_leaves_no_sandbox(pool: SessionPool, name: str) -> None:
    [fault] = try_worlds([of_world(f"one that {name}")], TOYS, pool)
    assert "broke" in fault
    assert "broken: " in fault
    all_are_closed(pool)


def test_what_is_flooded_is_asked_what_fits_its_schema_too() -> None:
    for environment in (*ENVIRONMENTS.values(), *TOYS.values()):
        for tool in environment.tools:
            assert fault_of(tool, plain_arguments(tool.parameters)) == "", (environment.name, tool.name)


def test_worlds_that_begin_unequally_are_told(pool: SessionPool) -> None:
    [fault] = try_worlds([of_world("one by chance")], {"one by chance": BY_CHANCE}, pool)
    assert "differs from one start to the next" in fault
    all_are_closed(pool)


@pytest.mark.parametrize("error", MACHINE_ERRORS)
def test_an_error_of_the_machine_is_no_fault_of_a_world(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch, error: type[SandboxError]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error("no sandbox is ready")

    monkeypatch.setattr(Sessions, "open", fails)
    with pytest.raises(error):
        try_worlds([of_world("counter")], TOYS, pool)


def test_a_world_that_another_one_reaches_is_told(pool: SessionPool) -> None:
    """Sandboxes hold worlds apart, so the leak is in what the host gives them: one session for all of a task."""
    [fault] = try_worlds([of_world("counter")], TOYS, Sharing(pool))
    assert "changes when another world is called" in fault
    all_are_closed(pool)


def test_a_taskset_whose_worlds_hang_is_not_certified(pool: SessionPool) -> None:
    class Played(Words):
        def draft(self, level: int, rng: Random) -> TaskDraft:
            return replace(super().draft(level, rng), environment="one that hangs", world={"start": 1})

    found = certify(Catalog({"toys": {"words": Played()}}), "words", judge, seeds=4, worlds=tried_in(TOYS, pool))
    assert not found.holds
    assert len(found.faults) == 2
    assert all("one that hangs is broken" in fault for fault in found.faults)
    all_are_closed(pool)


def test_what_only_a_foreign_program_scores_is_never_certified() -> None:
    class Scored(Words):
        def draft(self, level: int, rng: Random) -> TaskDraft:
            return replace(super().draft(level, rng), spec=FOREIGN_SPEC)

    def nobody(pairs: Sequence[tuple[Spec, str]]) -> Sequence[Verdict]:
        raise AssertionError("nothing of ours decides")

    found = certify(Catalog({"toys": {"words": Scored()}}), "words", nobody, seeds=3)
    assert not found.holds
    assert found.faults == (ONLY_FOREIGN,)


def test_other_packages_of_the_owners_worlds_are_another_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are the same, and what they ask about is not: a server that was installed anew may answer otherwise."""
    rows = [
        OwnRow(
            question=f"What is in account {at}?",
            spec=AnswerSpec(expected=str(at)),
            answer=str(at),
            origin="",
            environment="mcp",
            world={"package": "ledger_server"},
        )
        for at in range(40)
    ]
    content = OwnContent(name="books", added="", rows=with_levels(rows))
    catalog = BUILT_IN.with_domain("own", [OwnTaskset(content.model_copy(update={"digest": content.rows_digest()}))])
    monkeypatch.setattr("curriculum.adapters.set_folder", lambda _digest: tmp_path)
    made = []
    for digest in ("a" * 16, "b" * 16, "a" * 16):
        monkeypatch.setattr("curriculum.adapters.set_named", lambda _name, digest=digest: digest)
        made.append(made_by(catalog, "own/books"))
    assert made[0] == made[2] != made[1]
