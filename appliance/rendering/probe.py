"""Says whether text can be written for a model and read again, in a process of its own that ends with that.

    python -I -m appliance.rendering.probe FOLDER

It prints {"entries": 512}, one more than the highest token, or {"fault": "...", "hint": "..."}. A tokenizer's library
may end the process that reads a broken file; this one is there for that.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from appliance.rendering import formats
from appliance.rendering.renderer import RenderingError

SECONDS = 120
"""Of processor time: a tokenizer of a million entries takes some seconds."""
TEXT = "what is 12 plus 30? print(12 + 30)"
ANOTHER = "copy tokenizer.json again from where the model comes from, or take another model"
READ = (formats.FILE, formats.OLD_FILE, formats.TOKENIZER, "tokenizer_config.json", "chat_template.jinja")


def main(folder: Path) -> None:
    """Raises OSError for a file that is there and cannot be read."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    files = {name: (folder / name).read_bytes() for name in READ if (folder / name).is_file()}
    try:
        formats.require_known_template(files)
        renderer = formats.load_renderer(files)
        if _letters(renderer.text(renderer.plain(TEXT))) != _letters(TEXT):
            raise RenderingError("its tokenizer does not give a text back as it was written", hint=ANOTHER)
        entries = 1 + max(formats.load_tokenizer(files).get_vocab(with_added_tokens=True).values(), default=-1)
        answer: dict[str, object] = {"entries": entries}
    except RenderingError as error:
        answer = {"fault": str(error), "hint": error.hint}
    sys.stdout.write(json.dumps(answer) + "\n")


def _letters(text: str) -> str:
    """What has to come back: a tokenizer may write white space and capitals in its own way."""
    return "".join(text.split()).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
