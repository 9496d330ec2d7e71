"""While large libraries are loaded nothing is looked through for garbage, which is then freed once."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from appliance.system.loading import without_collecting

SEEN = """
import gc, sys
during = []
gc.callbacks.append(lambda phase, info: during.append("transformers" in sys.modules))
from appliance.inference import folder
during.clear()
folder._library()
print(len(during), gc.isenabled())
"""


@pytest.mark.parametrize("before", [True, False])
def test_afterwards_it_is_as_it_was_also_where_loading_failed(before: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with without_collecting():
            assert not gc.isenabled()
        with pytest.raises(ImportError), without_collecting():
            raise ImportError
        assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()


def test_a_model_s_library_is_loaded_with_one_collection_at_the_end() -> None:
    ran = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.split() == ["2", "True"], "its start and its stop"


def test_garbage_of_the_block_is_freed_and_not_frozen() -> None:
    class Cycle:
        """Refers to itself, as an exception and its frame do."""

    with without_collecting():
        made = Cycle()
        made.__dict__["itself"] = made
        there = weakref.ref(made)
        del made
    assert there() is None
