"""Says whether text can be written for a model and read again, in a process of its own that ends with that.

    python -I -m appliance.rendering.probe FOLDER

It prints {"entries": 512, "format": "..."}, one more than the highest token and how the model is written to, or
{"fault": "...", "hint": "..."}. A tokenizer's library may end the process that reads a broken file, and a chat template
may never end; this process is there for that. A model that no tool can be called with is a fault here: its nights would
find that out later. A template may write without end in one expression, so memory has a limit, too.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from appliance.rendering import formats
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import SAY_IT, RenderingError, ToolRequest

SECONDS = 120
"""Of processor time: a tokenizer of a million entries takes some seconds."""
MEMORY = 4 << 30
"""Bytes that it may write to: such a tokenizer takes one GiB."""
CODE = 'def f(n):\n    if n > 1:\n        return n * f(n - 1)\n    return 1\n\nprint(f(5), "A b")'
"""Whose line ends, indents, white space and capitals have to come back: in Python they mean something."""
TEXT = "what is 12 plus 30? print(12 + 30)"
ANOTHER = "copy tokenizer.json again from where the model comes from, or take another model"


def main(folder: Path) -> None:
    """Raises OSError for a file that is there and cannot be read."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    files = {name: (folder / name).read_bytes() for name in formats.FILES if (folder / name).is_file()}
    try:
        renderer = formats.load_renderer(files)
        if _letters(renderer.text(renderer.plain(TEXT))) != _letters(TEXT):
            raise RenderingError("its tokenizer does not give a text back as it was written", hint=ANOTHER)
        renderer.prompt((TextMessage(TEXT),))
        read = renderer.read(renderer.call(CODE), renderer.prompt((TextMessage(TEXT),)))
        if isinstance(read, ToolRequest) and read != ToolRequest(CODE):
            raise RenderingError("its tokenizer does not give the code of a call back as it was written", hint=ANOTHER)
        if read != ToolRequest(CODE):
            raise RenderingError("a call that is written in its format is not read back", hint=SAY_IT)
        entries = 1 + max(formats.load_tokenizer(files).get_vocab(with_added_tokens=True).values(), default=-1)
        answer: dict[str, object] = {"entries": entries, "format": renderer.name}
    except RenderingError as error:
        answer = {"fault": str(error), "hint": error.hint}
    sys.stdout.write(json.dumps(answer) + "\n")


def _letters(text: str) -> str:
    """What has to come back: a tokenizer may write white space and capitals in its own way."""
    return "".join(text.split()).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
