"""Processes are waited for by what they do."""

from __future__ import annotations

import os

from appliance.system.patience import Effort, Patience, Wait, effort_of


def test_processes_are_waited_for_by_what_they_do_and_not_by_the_clock() -> None:
    now, effort = [0.0], [Effort()]
    wait = Wait(lambda: effort[0], Patience(idle_seconds=60, busy_seconds=1000), lambda: now[0])
    for _ in range(100):  # hours on a machine that gives it a hundredth of a second a minute
        now[0] += 59
        effort[0] = Effort(effort[0].seconds + 0.01)
        assert wait.over() == ""
    now[0] += 59
    effort[0] = Effort(effort[0].seconds, 4096)  # it reads
    assert wait.over() == ""
    now[0] += 61
    assert wait.over() == "no CPU time used for 60 s"
    effort[0] = Effort(effort[0].seconds, 4096, on_disk=True)  # it flushes what it wrote
    for _ in range(10):
        now[0] += 61
        assert wait.over() == ""
    effort[0] = Effort(2000.0, 4096)
    assert "2000 s of CPU time used (1000 allowed)" in wait.over()


def test_who_only_wakes_up_now_and_then_does_nothing() -> None:
    now, effort = [0.0], [Effort()]
    wait = Wait(lambda: effort[0], Patience(idle_seconds=60, idle_share=0.01), lambda: now[0])
    said = []
    for _ in range(61):
        now[0] += 1
        effort[0] = Effort(effort[0].seconds + 0.005)
        said.append(wait.over())
    assert [bool(one) for one in said] == [False] * 60 + [True]
    effort[0] = Effort(effort[0].seconds + 1)
    assert wait.over() == ""


def test_what_a_group_of_processes_does_is_counted_and_nobody_elses() -> None:
    before = effort_of({os.getpgrp()})
    assert before.seconds > 0
    assert before.read > 0
    assert effort_of({os.getpgrp()}).read > before.read
    assert effort_of({-1}) == effort_of(()) == Effort()
