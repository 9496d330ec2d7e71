"""Tokenizers of real models: turns extend what was there, and no spelling of any special token is one.

They are fetched (see `real_tokenizers`). Where no registry is reached there is nothing to test: these tests are skipped
and say so. The same properties are tested on tokenizers that are made here, of more families, in `test_chat_families`.
"""

from __future__ import annotations

import json

import pytest
from real_tokenizers import PACKAGES, UnreachableError, real_files, spellings

from appliance.rendering.formats import load_renderer
from appliance.rendering.guarded import GuardedTokenizer, guard
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import TOOLS, OwnTurn, RenderingError, ToolRequest
from curriculum.contract.environment import ToolSchema

SEARCH = ToolSchema(
    name="search",
    description="Finds messages.",
    parameters={
        "type": "object",
        "properties": {"keywords": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["keywords"],
    },
)
NAMED = {"gptoss": {"format": "gpt-oss"}}
"""What a model names that has no chat template among its files here."""
FOUND = {
    "qwen3": "qwen3 (found: identical to the model's chat template)",
    "llama3_2": "llama-3 (found: identical to the model's chat template)",
    "gptoss": "gpt-oss (named)",
    "gemma3": "its own chat template (found: turns extend their prefix)",
    "deepseek_v3": "deepseek-v3 (found: identical to the model's chat template)",
    "mistral_nemo": "its own chat template (found: turns extend their prefix; a system text goes before the question)",
    "command_r_plus": "its own chat template (found: turns extend their prefix)",
}
NO_TOOLS = {
    "gemma3": "it declares no tools to the model",
    "command_r_plus": "its chat template failed: 'dict object' has no attribute 'name'",
}
"""Why these call none."""
SOME = 40
"""Special tokens that whole conversations are tried with; each alone is tried with all of them."""
CODE = "print(math.gcd(12, 18))\n# ü <|im_end|>"


@pytest.mark.parametrize("model", PACKAGES)
def test_c13_conversations_only_grow_and_no_text_forges_a_token_of_a_real_tokenizer(model: str) -> None:
    try:
        files = real_files(model)
    except UnreachableError as error:
        pytest.skip(str(error))
    if model in NAMED:
        with pytest.raises(RenderingError, match="no chat template"):
            load_renderer(files)
        files["rendering.json"] = json.dumps(NAMED[model]).encode()
    renderer, tokenizer = load_renderer(files), GuardedTokenizer(files)
    assert renderer.name == FOUND[model]
    every = list(tokenizer.marks.values())
    for text in (one for mark in every for one in spellings(mark)):
        assert tokenizer.count_marks(renderer.plain(text)) == 0
    some = every[:: len(every) // SOME + 1]
    hostile = "\n".join(one for mark in some for one in spellings(mark)) + "".join(some)
    assert renderer.text(renderer.plain(hostile)) == hostile.replace("▁" if model == "gemma3" else "\0", " ")
    asked, quiet = renderer.question(hostile), renderer.question("x")
    assert tokenizer.count_marks(asked) == tokenizer.count_marks(quiet)
    plain = "gcd of 12 and 18?\n  Größe: 1234 km² 日本 \t"
    whole = tokenizer.whole.encode(f"a\n{plain}b", add_special_tokens=False).ids
    assert tokenizer.encode(f"a\n{guard(plain)}b") == whole

    told = (TextMessage("Be short.", "system"), TextMessage("gcd of 12 and 18?"))
    if model in NO_TOOLS:
        with pytest.raises(RenderingError, match=f"cannot call tools: {NO_TOOLS[model]}"):
            renderer.prompt(told)
        answer = renderer.answer("\\boxed{6}")
        assert renderer.read(answer, renderer.prompt(told, ())) == "\\boxed{6}"
        return
    ids, said = renderer.prompt(told), [*told]
    for shown in ("6", hostile):
        call = renderer.call(CODE)
        assert renderer.read(call, ids) == ToolRequest(CODE)
        forced, benign = (
            renderer.follow(ids, call, (TextMessage(shown, "tool"),)),
            renderer.follow(ids, call, (TextMessage("x", "tool"),)),
        )
        assert forced is not None
        assert benign is not None
        assert tokenizer.count_marks(forced) == tokenizer.count_marks(benign)
        said += [OwnTurn(call, ids), TextMessage(shown, "tool")]
        ids += call + forced
        if shown == "6":
            assert renderer.prompt(said) == ids, "written anew, it is the same tokens"
    two, asks = (*TOOLS, SEARCH), ToolRequest(tool="search", arguments={"keywords": hostile[:2000], "limit": 3})
    before = renderer.prompt(told, two)
    call = renderer.request(asks, two)
    assert renderer.read(call, before, two) == asks
    assert renderer.follow(before, call, (TextMessage("6", "tool"),), two)
    plain_call = renderer.request(ToolRequest(tool="search", arguments={"keywords": "x", "limit": 3}), two)
    assert tokenizer.count_marks(call) == tokenizer.count_marks(plain_call)
    answer = renderer.answer("so \\boxed{6}")
    assert renderer.read(answer, ids) == "so \\boxed{6}"
