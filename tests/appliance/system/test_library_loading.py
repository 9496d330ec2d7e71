"""While large libraries are loaded nothing is looked through for garbage."""

from __future__ import annotations

import gc
import subprocess
import sys

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


def test_a_model_s_library_is_loaded_without_a_collection() -> None:
    ran = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.split() == ["0", "True"]
