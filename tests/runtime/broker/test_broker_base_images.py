"""The folder of golden images, which brokers of one user share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from runtime.backends.lease import Owner
from runtime.broker.base_images import IMAGES, BaseImages


def at_once(work: Callable[[], Any], done: Callable[[Future[Any]], None]) -> None:
    future: Future[Any] = Future()
    future.set_result(work())
    done(future)


def test_brokers_that_start_together_tidy_up_together(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir(mode=0o700)
    for number in range(60):
        for name in (f"new-999999999-1-abcdef-{number}", f"image-{number:02}"):
            (folder / name / "image").mkdir(parents=True)
            for part in range(8):
                (folder / name / "image" / str(part)).touch()
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: BaseImages(folder, Owner.current(), at_once), range(8)))
    assert len(made) == 8
    assert [path for path in folder.iterdir() if path.name.startswith("new-")] == []
    assert 0 < len(list(folder.iterdir())) <= IMAGES
