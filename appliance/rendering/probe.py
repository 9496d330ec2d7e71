"""Probe process: checks that text can be written for a model and read back.

  python -I -m appliance.rendering.probe FOLDER '{"export": true}'

Prints {"entries": 512, "format": "...", "omits": ""}, with one more than the highest token id, the format's name and
the text of the model's own template that it omits, or {"fault": "...", "hint": "..."}. With `format`, that one is
tried instead of the model's. With `export`, `files` are those that `formats.exported` returns, and `no_template` is its
reason. With `messages` and `for_chat`, pairs of role and text, and `tools`, `prompt` is the text of a first prompt, and
`length` its tokens.

A tokenizer library may crash on a damaged file, and a chat template may never end; a separate process contains both. A
model that cannot call tools is a fault here, which its cycles would find later. A template may write endlessly in one
expression, so memory is limited too.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from appliance.rendering import formats
from appliance.rendering.markers import MarkerRenderer, TextMessage
from appliance.rendering.renderer import SAY_IT, RenderingError, ToolRequest
from curriculum.contract.environment import ToolSchema

SECONDS = 120
"""CPU seconds: a tokenizer with a million entries takes some seconds."""
MEMORY = 4 << 30
"""Maximum writable bytes: such a tokenizer takes one GiB."""
CODE = 'def f(n):\n    if n > 1:\n        return n * f(n - 1)\n    return 1\n\nprint(f(5), "A b")'
"""Test code whose line ends, indents, spaces and capitals must survive, because they matter in Python."""
TEXT = "what is 12 plus 30? print(12 + 30)"
ANOTHER = "copy tokenizer.json again from the model's source, or use another model"


def main(folder: Path, wanted: dict[str, Any]) -> None:
    """Tests a model folder's tokenizer and chat format, within limits of CPU time and memory, and prints JSON, with
    what is `wanted` beside. Raises OSError for an unreadable file."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    files = {name: (folder / name).read_bytes() for name in formats.FILES if (folder / name).is_file()}
    if "format" in wanted:
        files[formats.FORMAT] = json.dumps({"format": wanted["format"]}).encode()
    try:
        renderer = formats.load_renderer(files)
        if _letters(renderer.text(renderer.plain(TEXT))) != _letters(TEXT):
            raise RenderingError("its tokenizer does not decode a text to the original", hint=ANOTHER)
        renderer.prompt((TextMessage(TEXT),))
        read = renderer.read(renderer.call(CODE), renderer.prompt((TextMessage(TEXT),)))
        if isinstance(read, ToolRequest) and read != ToolRequest(CODE):
            raise RenderingError("its tokenizer does not decode a call's code to the original", hint=ANOTHER)
        if read != ToolRequest(CODE):
            raise RenderingError("a call written in its format cannot be parsed", hint=SAY_IT)
        omits = renderer.omits if isinstance(renderer, MarkerRenderer) else ""
        entries = 1 + max(formats.load_tokenizer(files).get_vocab(with_added_tokens=True).values(), default=-1)
        answer: dict[str, object] = {"entries": entries, "format": renderer.name, "omits": omits}
        if wanted.get("messages"):
            messages = [TextMessage(text, role) for role, text in wanted["for_chat" if renderer.chat else "messages"]]
            tools = [ToolSchema.model_validate(tool) for tool in wanted["tools"]]
            prompt = renderer.prompt(messages, tools)
            answer["prompt"], answer["length"] = renderer.text(prompt), len(prompt)
        if wanted.get("export"):
            written, answer["no_template"] = formats.exported(files)
            answer["files"] = {name: text and text.decode() for name, text in written.items()}
    except RenderingError as error:
        answer = {"fault": str(error), "hint": error.hint}
    sys.stdout.write(json.dumps(answer) + "\n")


def _letters(text: str) -> str:
    """Returns a text in lower case without white space, to compare it after decoding: a tokenizer may change both."""
    return "".join(text.split()).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
