"""Certifies a taskset: the reference passes everywhere, and agents that do no work pass nowhere.

The agents: *null* gives the taskset's own null answers; *empty* an empty answer; *echo* the question; *random* the
answer of another task of the same level; *hack* claims success, admits ignorance, repeats all numbers of the question,
or names its topic. Each answers every task of every level. If a level has few different answers, a guess is often
right: the agent is then held to that chance instead of 2 %, and the report says so. A rate is above its bar if the
lower end of its 95 % interval (Wilson) is.

A generated taskset is also counted by topic and level, over further drafts that are not judged: if one answer is right
in more than a quarter of a topic, the check cannot detect work; and if questions repeat as they would among fewer than
`FEWEST`, a topic has too few for three splits. Agents are held to their bar in each topic, too. An owner's rows only
have no answer in common for most of a level.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from curriculum.catalog import Catalog
from curriculum.certification.certificate import AgentRate, Certificate, made_by
from curriculum.contract.errors import CurriculumError, ExhaustedError
from curriculum.contract.taskset import Finite, TaskDraft, Taskset
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.files.spec import FilesSpec
from verifiers.registry.spec import Spec
from verifiers.selftest.cases import CLAIMS, SAYS_NOTHING

SEEDS = 50
MOST = 0.02
"""Highest pass rate allowed for an agent that does no work."""
MOST_ALIKE, MOST_ROWS_ALIKE = 1 / 4, 2 / 3
"""Share of a topic's generated tasks that may have the same answer at one level, and of a level's rows of an owner, by
the interval's lower end."""
DRAWN, FEWEST = 100, 300
"""Drafts per topic and level whose keys and answers are counted, and fewest different questions that a topic has."""
REFERENCE = "reference"
NULL, EMPTY, ECHO, RANDOM, HACK = "null", "empty", "echo", "random", "hack"
GUESSES = (NULL, RANDOM)
"""Agents whose answers have the requested form: if few answers exist, they are right by chance."""
Z = 1.96
ONLY_FOREIGN = "only a foreign program scores answers: a foreign reward is not a verdict, and is never trained on"

Judge = Callable[[Sequence[tuple[Spec, str]]], Sequence[Verdict | SpecProblem]]


def certify(
    catalog: Catalog,
    name: str,
    judge: Judge,
    *,
    seeds: int = SEEDS,
    drawn: int = DRAWN,
    elsewhere: Callable[[], str] | None = None,
    worlds: Callable[[Sequence[TaskDraft]], list[str]] | None = None,
    say: Callable[[str], object] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> Certificate:
    """Certifies a taskset. `judge` decides (spec, answer) pairs, of `seeds` tasks a level; `drawn` tasks of each topic
    and level are counted, which costs no verdict; `elsewhere` returns `made_by` of another process;
    `worlds` tests the worlds of some drafts and returns faults. Raises UnknownTasksetError, and CurriculumError if
    nothing can be checked here."""
    taskset, started = catalog.named(name), clock()
    if why := taskset.missing():
        raise CurriculumError(
            f"{name} cannot be certified here: {why}", hint="run it on a machine that can check its answers"
        )
    made, faults = made_by(catalog, name), []
    if elsewhere is not None and (other := elsewhere()) != made:
        faults.append(f"another process makes different tasks from the same seeds: {other} instead of {made}")
    worst: dict[str, AgentRate] = {}
    tasks, some, without = 0, [], []
    finite, topics = isinstance(taskset, Finite), _Topics(taskset)
    for level in range(taskset.level_count):
        say(f"{name}: level {level} of {taskset.level_count}")
        drafts = drafts_of(catalog, name, level, seeds)
        tasks += len(drafts)
        some += drafts[:1]
        if not drafts:
            without.append(level)
            continue
        if all(scored_elsewhere(draft.spec) for draft in drafts):
            faults += [ONLY_FOREIGN] if ONLY_FOREIGN not in faults else []
            continue
        for agent, found in rates(taskset, drafts, judge, Random(level), topics.judged).items():
            if isinstance(found, str):
                faults.append(f"level {level}: {found}")
                continue
            if fault := _fault(agent, found):
                faults.append(f"level {level}: {fault}")
            before = worst.get(agent)
            worse = before is None or (found.rate < before.rate if agent == REFERENCE else found.rate > before.rate)
            worst[agent] = found if worse else worst[agent]
        if not finite:
            faults += topics.counted(level, drafts_of(catalog, name, level, drawn * len(taskset.topics)))
        elif _low(alike := _alike(drafts), len(drafts)) > MOST_ROWS_ALIKE:
            faults.append(
                f"level {level}: {alike} of {len(drafts)} tasks have the same answer, so it passes without work"
            )
    faults += [] if finite else topics.faults()
    if not tasks:
        faults.append("no level has a task")
    elif not finite:  # a finite taskset may lack rows of a level
        faults += [f"level {level} has no task" for level in without]
    if worlds is not None:
        faults += worlds(some)
    return Certificate(
        taskset=name,
        made=made,
        seeds=seeds,
        tasks=tasks,
        agents=worst,
        faults=tuple(faults),
        seconds=round(clock() - started, 3),
    )


class _Topics:
    """Counts of a generated taskset's tasks, questions and answers by topic."""

    def __init__(self, taskset: Taskset) -> None:
        self._nulls = len(taskset.null_answers)
        self._chance: dict[str, float] = {}
        """Highest share of one answer at any level."""
        self._results: dict[tuple[str, str], list[bool]] = {}

    def judged(self, agent: str, topic: str, passed: bool) -> None:
        self._results.setdefault((agent, topic), []).append(passed)

    def counted(self, level: int, drafts: Sequence[TaskDraft]) -> list[str]:
        """Counts the drafts of one level; returns the faults of its topics, in sentences."""
        by_topic: dict[str, list[TaskDraft]] = {}
        for draft in drafts:
            by_topic.setdefault(draft.topic, []).append(draft)
        faults = []
        for topic, some in by_topic.items():
            answer, alike = Counter(draft.answer for draft in some).most_common(1)[0]
            self._chance[topic] = max(self._chance.get(topic, 0.0), alike / len(some))
            if _low(alike, len(some)) > MOST_ALIKE:
                faults.append(
                    f"level {level}, topic {topic}: {alike} of {len(some)} tasks have the answer {answer[:40]!r}, so it"
                    " passes without work"
                )
            repeated = sum(times * (times - 1) // 2 for times in Counter(draft.key for draft in some).values())
            expected = len(some) * (len(some) - 1) / 2 / FEWEST
            if repeated > expected + 3 * math.sqrt(expected):
                faults.append(
                    f"level {level}, topic {topic}: about {expected * FEWEST / repeated:.0f} different questions, which"
                    f" are too few for three splits (at least {FEWEST})"
                )
        return faults

    def faults(self) -> list[str]:
        """Returns the agents that pass a topic without work, over all levels, in sentences."""
        found = []
        for (agent, topic), results in self._results.items():
            guesses = {NULL: self._nulls, RANDOM: 1}.get(agent, 0)
            bar = max(MOST, guesses * self._chance.get(topic, 0.0))
            if agent != REFERENCE and _low(sum(results), len(results)) > bar:
                found.append(
                    f"topic {topic}: the agent {agent!r} passes {sum(results)} of {len(results)}, more than {bar:.1%}"
                )
        return found


def drafts_of(catalog: Catalog, name: str, level: int, seeds: int) -> list[TaskDraft]:
    """Returns a taskset's drafts of one level, for the first `seeds` seeds. A finite taskset's items occur once."""
    found: dict[str, TaskDraft] = {}
    finite = catalog.finite(name) is not None
    for seed in range(seeds):
        try:
            draft = catalog.draft(name, level, seed)
        except ExhaustedError:
            continue
        found[draft.key if finite else f"{draft.key} {seed}"] = draft
    return list(found.values())


def scored_elsewhere(spec: Spec) -> bool:
    """True if only a foreign program scores the answer, so no built-in check decides it."""
    return isinstance(spec, FilesSpec) and spec.only_foreign


def rates(
    taskset: Taskset,
    drafts: Sequence[TaskDraft],
    judge: Judge,
    rng: Random,
    judged: Callable[[str, str, bool], object] = lambda agent, topic, passed: None,
) -> dict[str, AgentRate | str]:
    """Returns the pass rates of the reference answers, and of agents without work, on one level's drafts. If a check is
    invalid or fails to run, returns only its agent, with a sentence. `judged` is called with each agent, topic and
    result."""
    answers = {agent: [agent_answers(agent, taskset, draft, drafts, rng) for draft in drafts] for agent in AGENTS}
    asked = [
        (agent, place, draft.spec, answer)
        for agent, given in answers.items()
        for place, draft in enumerate(drafts)
        for answer in given[place]
    ]
    verdicts = judge([(spec, answer) for _, _, spec, answer in asked])
    passed: dict[str, set[int]] = {agent: set() for agent in AGENTS}
    for (agent, place, _, _), verdict in zip(asked, verdicts, strict=True):
        if isinstance(verdict, SpecProblem):
            return {agent: f"the check of {drafts[place].key[:80]!r} is invalid: {verdict.message}"}
        if verdict.outcome is Outcome.INFRA_ERROR:
            return {agent: f"the check of {drafts[place].key[:80]!r} failed to run: {verdict.reason}"}
        if verdict.passed:
            passed[agent].add(place)
    for agent, places in passed.items():
        for place, draft in enumerate(drafts):
            judged(agent, draft.topic, place in places)
    chance = commonest(drafts)
    return {
        agent: AgentRate(
            passed=len(places),
            of=len(drafts),
            bar=1.0 if agent == REFERENCE else MOST,
            chance=chance if agent in GUESSES and chance > MOST else 0.0,
        )
        for agent, places in passed.items()
    }


def agent_answers(
    agent: str, taskset: Taskset, draft: TaskDraft, drafts: Sequence[TaskDraft], rng: Random
) -> Sequence[str]:
    """Returns the answers that one of the agents gives to a task; the agent passes if any answer does."""
    question = "\n".join(message.text for message in draft.messages)
    match agent:
        case "reference":
            return (draft.answer,)
        case "null":
            return tuple(taskset.null_answers)
        case "empty":
            return ("",)
        case "echo":
            return (question,)
        case "random":
            return (rng.choice([other.answer for other in drafts if other.key != draft.key] or [""]),)
        case _:
            return (CLAIMS, SAYS_NOTHING, " ".join(re.findall(r"\d+", question)) or "0", draft.topic.replace("_", " "))


AGENTS = (REFERENCE, NULL, EMPTY, ECHO, RANDOM, HACK)


def commonest(drafts: Sequence[TaskDraft]) -> float:
    """Returns the share of drafts that have the most common answer: the pass rate of the best guess."""
    return _alike(drafts) / len(drafts)


def _alike(drafts: Sequence[TaskDraft]) -> int:
    return max(Counter(draft.answer for draft in drafts).values())


def _fault(agent: str, found: AgentRate) -> str:
    if agent == REFERENCE:
        wrong = found.of - found.passed
        return f"{wrong} of {found.of} reference answers do not pass their own check" if wrong else ""
    bar = max(found.bar, found.chance)
    if _low(found.passed, found.of) > bar:
        return f"the agent {agent!r} passes {found.passed} of {found.of}, more than {bar:.1%}"
    return ""


def _low(passed: int, of: int) -> float:
    """Returns the lower end of the 95 % interval of the pass rate `passed / of` (Wilson, JASA 22, 1927)."""
    share, z = passed / of, Z * Z / of
    return (share + z / 2 - Z * math.sqrt(share * (1 - share) / of + z / (4 * of))) / (1 + z)
