"""Tasks of the package verifiers with tools of their own, called by `use_tool`.

They need its packages for guests: `assay curriculum adapter install verifiers`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from curriculum.adapters import ADAPTERS
from curriculum.environments.foreign import VERIFIERS
from curriculum.foreign.making import TOOL_TURNS, make_rows
from curriculum.worlds.world import World
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from verifiers.files.verifier import FilesVerifier

ADAPTER = ADAPTERS["verifiers"]
PACKAGE = Path(__file__).parents[2] / "fixtures" / "verifiers_package" / "tools_env"
LIMITS = Limits(call_seconds=20, memory_mib=512)
pytestmark = pytest.mark.skipif(bool(ADAPTER.missing()), reason=ADAPTER.missing())


def test_a_task_lists_its_tools_and_each_world_has_a_state_of_its_own(pool: Sessions) -> None:
    rows, _ = make_rows(pool, "verifiers", "tools_env", package="tools_env", tasks=1)
    row = rows[0]
    assert (row.tools, row.turns) == (("use_tool", "give_answer"), TOOL_TURNS)
    assert '"name": "words_translate"' in row.question
    assert "Translates a word into French." in row.question
    with World.open(pool, VERIFIERS, row.world) as world, World.open(pool, VERIFIERS, row.world) as other:
        ask = {"name": "words_translate", "arguments": {"word": "red"}}
        assert [world.call("use_tool", ask).text for _ in range(2)] == ["rouge (1)", "rouge (2)"]
        assert other.call("use_tool", ask).text == "rouge (1)"
        for wrong in ({**ask, "arguments": {"word": "grey"}}, {**ask, "arguments": {}}, {**ask, "name": "translate"}):
            assert world.call("use_tool", wrong).failed
        assert not world.call("give_answer", {"answer": "rouge"}).failed
        submission = world.submission()
    assert submission is not None
    assert FilesVerifier(pool).verify(row.spec, submission).foreign_reward == 1.0
