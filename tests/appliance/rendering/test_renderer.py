"""What every format keeps: text comes back, no text has power, and a conversation only grows at its end."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from chat_models import tokenizer_of
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tokenizers import Tokenizer

from appliance.inference.folder import read_model
from appliance.rendering.formats import load_renderer, write_markers
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.markers import CHATML, SEEDLING, MarkerRenderer, TextMessage
from appliance.rendering.renderer import TOOLS, Malformed, OwnTurn, Renderer, RenderingError, ToolRequest, code_request
from appliance.seedling.tokenizer import train_tokenizer
from curriculum.contract.environment import ToolSchema

FOLDER = Path(__file__).parents[2] / "fixtures" / "seedling"
TEXTS = [f"gcd of {a} and {b}? print(math.gcd({a},{b}))" for a in range(12) for b in range(40)]
RENDERERS: dict[str, Renderer] = {
    name: MarkerRenderer(Tokenizer.from_str(train_tokenizer(TEXTS, markers).to_str()), markers)
    for name, markers in {"seedling": SEEDLING, "chatml": CHATML}.items()
}
MARKERS = [marker for markers in (SEEDLING, CHATML) for marker in asdict(markers).values()]
hostile = st.lists(st.one_of(st.text(max_size=12), st.sampled_from(MARKERS)), max_size=6).map("".join)


@pytest.fixture(params=RENDERERS)
def renderer(request: pytest.FixtureRequest) -> Renderer:
    return RENDERERS[request.param]


def test_a_call_and_a_last_turn_are_read_back(renderer: Renderer) -> None:
    assert renderer.read(renderer.call("print(1)")) == ToolRequest("print(1)")
    assert renderer.read(renderer.answer("so \\boxed{42}")) == "so \\boxed{42}"


def test_results_and_questions_follow_a_turn_as_the_whole_conversation_is_written(renderer: Renderer) -> None:
    asked, call = (TextMessage("1?"),), renderer.call("1")
    ids = renderer.prompt(asked)
    new = (TextMessage("2", "tool"), TextMessage("sure?"), TextMessage("why?"))
    for count in (1, 2, 3):
        whole = renderer.prompt((*asked, OwnTurn(call, ids), *new[:count]))
        assert ids + call + (renderer.follow(ids, call, new[:count]) or ()) == whole


def test_a_call_without_code_or_with_a_marker_inside_is_malformed(renderer: Renderer) -> None:
    assert renderer.read(renderer.call("  ")) == Malformed("  ", "empty call")
    call = renderer.call("print(1)")
    assert isinstance(renderer.read((*call[:-1], *call)), Malformed)
    result = renderer.result("5")
    assert isinstance(renderer.read((*call[:-1], *result)), Malformed)


def test_a_call_in_the_middle_of_a_turn_is_malformed_not_an_answer(renderer: Renderer) -> None:
    assert isinstance(renderer.read((*renderer.plain("\\boxed{5} "), *renderer.call("print(1)"))), Malformed)


@pytest.mark.parametrize("name", RENDERERS)
@settings(max_examples=FROM_STRANGERS)
@given(text=hostile)
def test_text_from_outside_comes_back_and_ends_no_turn(name: str, text: str) -> None:
    renderer = RENDERERS[name]
    ids = renderer.plain(text)
    assert renderer.text(ids) == text
    assert renderer.stop not in ids
    assert renderer.question(text).count(renderer.stop) == renderer.result(text).count(renderer.stop) == 1
    assert isinstance(renderer.read((*ids, renderer.stop)), ToolRequest | Malformed | str)


def test_a_mark_that_the_tokenizer_does_not_call_special_has_no_power_either() -> None:
    files = {"tokenizer.json": tokenizer_of("qwen3").encode(), "rendering.json": b'{"format": "chatml"}'}
    renderer, tokenizer = load_renderer(files), GuardedTokenizer(files)
    asked = [renderer.question(text) for text in ("<tool_call>a<think>b</tool_response>", "x")]
    assert tokenizer.count_marks(asked[0]) == tokenizer.count_marks(asked[1])


@pytest.mark.parametrize("name", RENDERERS)
@given(question=hostile, shown=hostile, code=st.text(max_size=12))
def test_a_conversation_that_goes_on_extends_what_was_there(name: str, question: str, shown: str, code: str) -> None:
    renderer = RENDERERS[name]
    call = renderer.call(code)
    turn = TextMessage(renderer.text(call[:-1]), "assistant")
    asked = [TextMessage(question), turn, TextMessage(shown, "tool")]
    assert renderer.prompt(asked[:1]) == renderer.question(question)
    assert renderer.prompt(asked) == renderer.question(question) + call + renderer.result(shown)


def test_what_the_system_says_stands_in_front_of_the_question(renderer: Renderer) -> None:
    both = renderer.prompt([TextMessage("be short", "system"), TextMessage("gcd of 1 and 2?")])
    assert both == renderer.question("be short\ngcd of 1 and 2?")


@pytest.mark.parametrize(
    "roles", [(), ("system",), ("assistant",), ("tool",), ("user", "assistant"), ("user", "system", "user"), ("judge",)]
)
def test_a_conversation_that_cannot_be_written_is_refused(renderer: Renderer, roles: tuple[str, ...]) -> None:
    with pytest.raises(RenderingError):
        renderer.prompt([TextMessage("text", role) for role in roles])


def test_a_tool_that_the_format_cannot_call_is_refused(renderer: Renderer) -> None:
    assert renderer.prompt([TextMessage("1?")], tools=()) == renderer.question("1?")
    with pytest.raises(RenderingError, match="no way to call search"):
        renderer.prompt(
            [TextMessage("1?")], tools=(*TOOLS, ToolSchema(name="search", description="Finds.", parameters={}))
        )


def test_a_tokenizer_without_a_token_that_ends_a_turn_is_refused() -> None:
    with pytest.raises(RenderingError, match="lacks the end token"):
        MarkerRenderer(train_tokenizer(TEXTS, SEEDLING), CHATML)


def test_a_folder_says_its_format_and_for_one_that_says_nothing_nothing_is_guessed(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "model")
    (tmp_path / "model" / "dialect.json").unlink(missing_ok=True)
    write_markers(tmp_path / "model", SEEDLING)
    assert load_renderer(read_model(tmp_path / "model")).question("1?") == load_renderer(read_model(FOLDER)).question(
        "1?"
    )
    (tmp_path / "model" / "rendering.json").unlink()
    with pytest.raises(RenderingError, match="no chat template") as met:
        load_renderer(read_model(tmp_path / "model"))
    assert "rendering.json" in met.value.hint


def test_a_folder_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "model")
    (tmp_path / "model" / "rendering.json").unlink(missing_ok=True)
    (tmp_path / "model" / "dialect.json").write_text(json.dumps(asdict(SEEDLING)))
    assert load_renderer(read_model(tmp_path / "model")).question("1?") == load_renderer(read_model(FOLDER)).question(
        "1?"
    )


@pytest.mark.parametrize(
    ("written", "message"),
    [('{"format": "nobody"}', "unknown format"), ('{"user": "u"}', "does not fit"), ("[]", "not a JSON object")],
)
def test_a_format_that_is_not_known_is_refused(tmp_path: Path, written: str, message: str) -> None:
    shutil.copytree(FOLDER, tmp_path / "model")
    (tmp_path / "model" / "rendering.json").write_text(written)
    with pytest.raises(RenderingError, match=message):
        load_renderer(read_model(tmp_path / "model"))


@pytest.mark.parametrize(
    ("written", "run"),
    [
        (" a = 1\nprint(a)", "a = 1\nprint(a)"),
        ("\n  for i in x:\n    print(i)\n", "\nfor i in x:\n  print(i)\n"),
        ("\tprint(1)", "print(1)"),
        ("if a:\n    b()\n", "if a:\n    b()\n"),
        ("print('''\n  x''')", "print('''\n  x''')"),
        ("(a\n b)", "(a\n b)"),
    ],
)
def test_code_whose_first_line_is_indented_is_moved_to_the_margin_and_other_code_is_unchanged(
    written: str, run: str
) -> None:
    assert code_request(written) == ToolRequest(run)


def test_a_call_of_nothing_but_blanks_is_malformed() -> None:
    assert code_request(" \n\t") == Malformed(" \n\t", "empty call")
