"""A taskset whose tools the model's format cannot call is not asked of that model."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_models import files_of

from appliance.worker.setup.cycle_setup import left_out
from curriculum.contract.errors import CurriculumError


def test_tasksets_with_tools_are_left_out_for_a_format_that_calls_only_python(tmp_path: Path) -> None:
    found = left_out(("digits", "mail_search"), {})
    assert found == {"mail_search": "this model's format has no way to call read_email, search_inbox"}
    for name, data in files_of("qwen3").items():
        (tmp_path / name).write_bytes(data)
    assert left_out(("digits", "mail_search"), {}, tmp_path) == {}
    with pytest.raises(CurriculumError, match="no usable taskset: mail_search: this model's format has no way"):
        left_out(("mail_search",), {})
