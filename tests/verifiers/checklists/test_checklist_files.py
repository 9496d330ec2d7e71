"""Lists in files: TOML and JSON, sources beside them, and errors that a person can act on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS

from verifiers.checklists.files import checklist_from
from verifiers.checklists.spec import ChecklistSpec, JsonItem, SoftItem
from verifiers.contract.errors import SpecError

LIST = """
question = "Describe the water cycle."
soft_share = 0.2
[[sources]]
key = "W"
file = "water.txt"
[[items]]
item = "length"
target = 120
[[items]]
name = "the words"
item = "words"
required = ["rain"]
[[items]]
item = "json"
rules = { type = "object", required = ["a"] }
[[items]]
item = "soft"
point = "It is kind."
"""


def test_a_list_is_read_with_its_sources(tmp_path: Path) -> None:
    (tmp_path / "water.txt").write_text("Rain falls.", encoding="utf-8")
    spec = checklist_from(LIST, tmp_path)
    assert [item.name for item in spec.items] == ["1 length", "the words", "3 json", "4 soft"]
    assert spec.sources[0].text == "Rain falls."
    assert isinstance(spec.items[2], JsonItem)
    assert isinstance(spec.items[3], SoftItem)
    assert hash(spec) == hash(checklist_from(LIST, tmp_path))


def test_what_was_written_as_json_is_read_again(tmp_path: Path) -> None:
    spec = ChecklistSpec.model_validate({"items": [{"item": "count", "name": "n", "of": "words", "least": 3}]})
    assert checklist_from(spec.model_dump_json(), tmp_path) == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "items = 3",
        "items = [1]",
        "items = []",
        "[[items]]\nitem = 'none'",
        "[[items]]\nitem = 'count'",
        "[[items]]\nitem = 'count'\nof = 'words'\nleast = 1\nmost = 0",
        "[[items]]\nitem = 'soft'\npoint = 'x'",
        "sources = [1]\n[[items]]\nitem = 'count'\nof = 'words'\nleast = 1",
        "[[sources]]\nkey = 'a'\nfile = 'missing.txt'\n[[items]]\nitem = 'citations'",
        "[[sources]]\nkey = 'a'\nfile = 3\n[[items]]\nitem = 'citations'",
        "what = 1\n[[items]]\nitem = 'count'\nof = 'words'\nleast = 1",
        "not toml",
    ],
)
def test_a_file_that_is_no_list_says_what_to_do(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        checklist_from(text, tmp_path)
    assert error.value.hint
    assert str(error.value).isprintable()


@pytest.mark.parametrize(("name", "why"), [("missing.txt", "cannot be read"), ("binary", "not UTF-8"), (".", "cannot")])
def test_a_source_that_is_not_there_or_not_text(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=why):
        checklist_from(LIST.replace("water.txt", name), tmp_path)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ITEMS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("item", "name", "of", "least", "rules", "pattern", "facts", "columns", "point"), JSONS)
)


@settings(max_examples=FROM_STRANGERS, deadline=None)
@given(
    st.fixed_dictionaries(
        {"items": st.lists(ITEMS | JSONS, max_size=3)}, optional={"sources": JSONS, "question": JSONS}
    )
)
def test_no_content_breaks_the_reader(content: dict[str, object]) -> None:
    try:
        spec = checklist_from(json.dumps(content), Path("/nowhere"))
    except SpecError:
        return
    assert spec.hard
