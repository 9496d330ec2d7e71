"""What honest code does works under nsjail's policy: programs, threads, files, event loops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from box_kit import Guest
from jail_kit import Jails

from runtime.settings import BrokerSettings

USEFUL = {
    "a program": """import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout == b'1\\n')""",
    "a program ended": """import subprocess, sys
process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
process.kill()
print(process.wait() == -9)""",
    "a thread": """import threading
thread = threading.Thread(target=print, args=(True,))
thread.start(); thread.join()""",
    "an event loop": """import asyncio
async def main():
    process = await asyncio.create_subprocess_exec('/usr/bin/python3', '-c', 'print(2)', stdout=-1)
    return (await process.communicate())[0] == b'2\\n'
print(asyncio.run(main()))""",
    "a fork": """import os
pid = os.fork()
if not pid: os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3)""",
    "a worker process": """import multiprocessing
process = multiprocessing.get_context('fork').Process(target=int)
process.start(); process.join()
print(process.exitcode == 0)""",
    "a pipe between processes": """import multiprocessing
one, other = multiprocessing.Pipe()
one.send([1])
print(other.recv() == [1])""",
    "a copied tree": """import os, shutil
os.makedirs('/work/a/b'); open('/work/a/b/c', 'w').close()
shutil.copytree('/work/a', '/work/z'); shutil.copy2('/work/a/b/c', '/tmp/c')
print(os.path.exists('/work/z/b/c'))""",
    "a temporary file": """import tempfile
with tempfile.TemporaryFile() as file: print(file.write(b'x') == 1)""",
    "a named pipe": "import os; os.mkfifo('/work/pipe'); print(True)",
    "a mapped file": """import mmap
with open('/work/map', 'w+b') as file:
    file.truncate(4096)
    mapped = mmap.mmap(file.fileno(), 4096)
mapped[0] = 7
print(mapped[0] == 7)""",
    "a timer": """import signal
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
print(seen == [1])""",
    "a database": """import sqlite3
base = sqlite3.connect('/work/base')
base.execute('create table t(x)'); base.commit()
print(True)""",
    "a call of C": "import ctypes; print(ctypes.CDLL(None).abs(-5) == 5)",
    "a pool of threads": """from concurrent.futures import ThreadPoolExecutor
print(list(ThreadPoolExecutor(4).map(abs, [-1, -2])) == [1, 2])""",
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory, root_dir: Path) -> Iterator[Guest]:
    jails = Jails(BrokerSettings(state_dir=tmp_path_factory.mktemp("jails"), root_dir=root_dir))
    with jails.guest() as found:
        yield found
    jails.close()


@pytest.mark.parametrize("what", USEFUL)
def test_what_ordinary_code_does_works(guest: Guest, what: str) -> None:
    assert guest.says(USEFUL[what]) == "True\n"
