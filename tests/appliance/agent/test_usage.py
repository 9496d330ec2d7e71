"""What rollouts used is added up without losing a second, and without making up what nobody measured."""

from __future__ import annotations

from tables import table

from appliance.agent.usage import by_tier, figures, total
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus
from runtime.sandbox import Tier, Usage


def rollout(usage: Usage, *tiers: Tier | None) -> Rollout:
    calls = [
        Message(
            parent=0,
            role=Role.TOOL,
            ids=(1,),
            sampled=False,
            call=ToolCall(code="1", status=ToolStatus.OK if tier else ToolStatus.PARSE_ERROR, tier=tier),
        )
        for tier in tiers
    ]
    return Rollout(
        id="r",
        cycle="c",
        step=0,
        task="t",
        sample=0,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        nodes=(Message(parent=None, role=Role.USER, ids=(1,), sampled=False), *calls),
        ended=RolloutEnd.ANSWERED,
        answer="6",
        answers=1,
        seconds=1.0,
        usage=usage,
    )


SHARED = rollout(Usage(calls=2, seconds=0.25, output_bytes=10), Tier.SHARED, Tier.SHARED)
MOVED = rollout(
    Usage(calls=3, seconds=1.5, output_bytes=5, moves=2, snapshots=1, cpu_seconds=0.5, peak_memory_mib=40.0),
    Tier.SHARED,
    Tier.PROCESS,
    None,
    Tier.SANDBOX,
    Tier.SHARED,
)
SILENT = rollout(Usage(), None)


def test_what_rollouts_used_is_summed_and_of_memory_the_highest_counts() -> None:
    assert total([SHARED, MOVED, MOVED, SILENT]) == Usage(
        calls=8, seconds=3.25, output_bytes=20, moves=4, snapshots=2, cpu_seconds=1.0, peak_memory_mib=40.0
    )
    assert total([]) == Usage()


def test_where_no_rollout_had_a_sandbox_of_its_own_no_figure_is_made_up() -> None:
    assert total([SHARED, SILENT]).cpu_seconds is None
    assert total([SHARED, SILENT]).peak_memory_mib is None


def test_a_rollout_counts_once_with_the_most_isolation_that_it_needed() -> None:
    assert by_tier([SHARED, MOVED, MOVED, SILENT]) == {Tier.SHARED: 1, Tier.PROCESS: 0, Tier.SANDBOX: 2}


def test_a_step_s_figures_are_numbers_with_names() -> None:
    assert figures([SHARED, MOVED, SILENT]) == {
        "sandbox_seconds": 1.75,
        "sandbox_cpu_seconds": 0.5,
        "sandbox_moves": 2.0,
        "rollouts_shared": 1.0,
        "rollouts_process": 0.0,
        "rollouts_sandbox": 1.0,
    }


def test_a_rollout_recorded_before_usage_was_kept_still_loads() -> None:
    old = SHARED.model_dump(mode="json", exclude={"usage"})
    assert Rollout.model_validate(old).usage == Usage()


@table("status", list(ToolStatus))
def test_only_code_that_ran_needs_a_sandbox_on_it(status: ToolStatus) -> None:
    assert status.ran is (status.value not in ("parse_error", "limit", "calls"))
