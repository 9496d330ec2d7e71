"""Rows 14, 15, 21, 22, 23, 57 and 60 of the catalogue: poisoned surroundings, and what can be learned from them.

What a session leaves behind in its own sandbox poisons nothing that the host does there, and nothing at all elsewhere;
and there is nothing to be learned: no file, variable, name or number of the host or of another session.
"""

from __future__ import annotations

import json
import os

import pytest
from attack_kit import CANARY, OK, AttackBench

from runtime.errors import BadRequestError
from runtime.profile import BackendName
from runtime.sandbox import CallStatus, Tier

PYTHON = "/usr/bin/python3"
POISON = """import os, sys
modules = ('json', 'os', 'struct', 'select', 'errno', 'random', 'runtime', 'sitecustomize', 'usercustomize')
for folder in ('/work', '/tmp'):
    for name in modules:
        with open(f'{folder}/{name}.py', 'w') as file: file.write("import os\\nos.write(1, b'POISON')\\n")
for name in ('python3', 'sh', 'cat', 'git', 'curl', 'pytest'):
    with open(f'/work/{name}', 'w') as file: file.write('#!/usr/bin/python3\\nprint("POISON")\\n')
    os.chmod(f'/work/{name}', 0o777)
site = '/work/.local/lib/python3.11/site-packages'
os.makedirs(site)
with open(f'{site}/x.pth', 'w') as file: file.write('import os; os.write(1, b"POISON")\\n')
os.makedirs('/work/__pycache__')
os.environ.update(PATH='/work', PYTHONPATH='/work', PYTHONSTARTUP='/work/os.py', LD_PRELOAD='/work/x.so', HOME='/tmp',
    BASH_ENV='/work/sh', PYTHONHOME='/work', LD_LIBRARY_PATH='/work', PYTHONINSPECT='1')
sys.path.insert(0, '/work')
sys.modules['struct'] = None
"""
TOLD = "import json, os, sys\nprint(json.dumps([dict(os.environ), sys.path]))"
ROOT = ("/usr/bin/python3", "/opt/runtime/guest/worker.py", "/opt/runtime/guest/wire.py", "/usr/lib/python3.11/os.py")
REPLACED = f"""import os
open('/work/x', 'w').close()
done = []
for path in {ROOT}:
    for attempt in (lambda: os.replace('/work/x', path), lambda: os.unlink(path), lambda: os.truncate(path, 0),
                    lambda: os.chmod(path, 0o777), lambda: os.link('/work/x', path + '.new'),
                    lambda: os.symlink('/work/x', path + '.new'), lambda: os.rename('/opt', '/work/opt')):
        try: attempt(); done.append(path)
        except OSError: pass
print(done)
"""


def test_poisoned_modules_programs_and_variables_reach_nothing_that_the_host_asks_for(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        assert bench.call(box, POISON).status is OK
        ran = box.exec([PYTHON, "-I", "-S", "-c", TOLD])
        assert b"POISON" not in ran.stdout + ran.stderr
        environment, path = json.loads(ran.stdout)
        assert environment["PATH"] == "/usr/bin:/bin"
        assert not {"LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "PYTHONSTARTUP"} & set(environment)
        assert not [entry for entry in path if entry.startswith(("/work", "/tmp"))]
        box.write("/work/after", b"as it was")
        assert box.read("/work/after") == b"as it was"
        assert any(entry.path == "/work/after" for entry in box.list("/work"))
        with pytest.raises(BadRequestError):
            box.exec(["cat", "/work/after"])
    with bench.sandbox() as box:
        seen = bench.call(box, "import json, os, struct\nprint(os.listdir('/work'), os.environ['PATH'])")
        assert seen.output == "[] /usr/bin:/bin\n"


def test_nothing_of_the_root_can_be_replaced(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        assert bench.call(box, REPLACED).output == "[]\n"


LOOK = """import json, os, socket, sys
def names(path):
    try: return sorted(os.listdir(path))
    except OSError as error: return error.errno
folders = ('/', '/tmp', '/work', '/proc', '/sys', '/dev', '/etc', '/opt', '/run', '/home', '/root', '/mnt', '/var')
print(json.dumps([dict(os.environ), socket.gethostname(), os.getuid(), os.getgid(), os.getgroups(), os.getcwd(),
    sys.argv, sys.path, sys.flags[:], list(os.uname()), os.cpu_count(), {path: names(path) for path in folders},
    hash('a'), sorted(sys.modules)]))
"""


def test_every_sandbox_looks_the_same_from_inside(bench: AttackBench) -> None:
    """Row 21: code cannot tell who is looking, and behave."""
    seen = []
    for _ in range(3):
        with bench.sandbox() as box:
            seen.append(bench.call(box, LOOK).output)
    assert len(set(seen)) == 1
    with bench.pool.open(tier=Tier.SANDBOX, caller="somebody else") as session:
        assert session.run(LOOK).output == seen[0]


SEARCH = """import gc, os, stat
hits, budget = [], 4000
def look(what, data):
    if CANARY in (data if isinstance(data, bytes) else data.encode()): hits.append(what)
CANARY = bytes.fromhex('{hidden}')
look('environment', repr(dict(os.environ)))
for folder, below, names in os.walk('/'):
    if folder.startswith(('/usr/lib', '/lib')): below[:] = []; continue
    for name in names:
        path = os.path.join(folder, name)
        look('a name', path)
        try:
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_size < 1 << 16 and budget:
                budget -= 1
                with open(path, 'rb') as file: look(path, file.read())
        except OSError: pass
for path in ('/proc/self/environ', '/proc/1/environ', '/proc/self/cwd/x', '/proc/1/cmdline', '/proc/self/mountinfo',
             '/proc/1/maps', '/proc/cmdline', '/proc/keys', '/sys/kernel/notes'):
    try:
        with open(path, 'rb') as file: look(path, file.read(1 << 16))
    except OSError: pass
for thing in gc.get_objects():
    if isinstance(thing, (dict, list, tuple)) and thing is not hits:
        for inner in (thing.values() if isinstance(thing, dict) else thing):
            if type(inner) in (str, bytes) and inner != CANARY and CANARY in (inner if type(inner) is bytes else
                inner.encode('utf-8', 'surrogatepass')): hits.append('memory')
print(hits)
"""


def test_a_word_of_the_host_is_found_nowhere_inside(bench: AttackBench) -> None:
    """Rows 22, 23 and 57: the word is in the environment of this process and so of the broker's parent, in the state
    folder and in /tmp of the host."""
    assert os.environ["ATTACK_CANARY"] == CANARY
    with bench.sandbox(call_seconds=120.0) as box:
        result = box.run(SEARCH.format(hidden=CANARY.encode().hex()))
        assert (result.status, result.output) == (OK, "[]\n")


def test_there_is_no_history_and_no_cache_to_read(bench: AttackBench) -> None:
    wanted = "{'.git', '.hg', '.svn', '.cache', '.ssh', '.netrc', '.bash_history', 'pip', '.aws', 'shadow', '.env'}"
    code = f"import os\nprint([(f, n) for f, d, names in os.walk('/') for n in [*d, *names] if n in {wanted}])"
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "[]\n"


MARK = """import builtins, os, resource, sys
for folder in ('/work', '/tmp', '/dev', '/', '/dev/shm', '/run', '/var/tmp', '/proc', '/opt'):
    try: open(f'{folder}/mark', 'w').write('MARK')
    except OSError: pass
os.environ['MARK'] = sys.mark = builtins.MARK = 'MARK'
os.umask(0)
os.chdir('/tmp')
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
"""
UNMARKED = """import builtins, os, resource, sys
marks = [path for path, _, names in os.walk('/') if 'mark' in names]
print(marks, 'MARK' in os.environ, hasattr(sys, 'mark'), hasattr(builtins, 'MARK'), os.getcwd(),
    resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64, oct(os.umask(0o22)))
"""


def test_nothing_of_one_session_is_found_in_the_next(bench: AttackBench) -> None:
    for _ in range(2):
        with bench.pool.open(tier=Tier.SANDBOX) as session:
            assert session.run(MARK).status is OK
        with bench.pool.open(tier=Tier.SANDBOX) as session:
            assert session.run(UNMARKED).output == "[] False False False /work True 0o22\n"


def test_sessions_that_share_a_sandbox_see_nothing_of_each_other(bench: AttackBench) -> None:
    with bench.pool.open(tier=Tier.PROCESS) as one, bench.pool.open(tier=Tier.PROCESS) as other:
        assert one.run("import sys, math\nsys.mark = math.mark = 'MARK'\nmine = 'MARK'").status is OK
        seen = other.run("import sys, math\nprint(hasattr(sys, 'mark'), hasattr(math, 'mark'), 'mine' in globals())")
        assert (seen.status, seen.output) == (CallStatus.OK, "False False False\n")


def test_the_order_of_a_set_is_the_same_in_every_tier(bench: AttackBench) -> None:
    """Otherwise a history that is repeated elsewhere could look different, and tell where it runs."""
    seen = set()
    for tier in Tier:
        with bench.pool.open(tier=tier) as session:
            result = session.run("print({'a', 'b', 'c', 'd', 'e'})")
            assert (result.status, result.tier) == (OK, Tier.PROCESS if tier is Tier.SHARED else tier)
            seen.add(result.output)
    assert len(seen) == 1


def test_descriptors_inside_lead_nowhere_but_to_the_own_supervisor(bench: AttackBench) -> None:
    code = """import os, stat
found = {}
for number in range(1024):
    try: mode = os.fstat(number).st_mode
    except OSError: continue
    found[number] = 'pipe' if stat.S_ISFIFO(mode) else 'device' if stat.S_ISCHR(mode) else 'other'
print(found)
"""
    with bench.sandbox() as box:
        found = eval(bench.call(box, code).output)  # a dictionary of the test's own making
        assert set(found.values()) <= {"pipe", "device"}
        assert len(found) <= 8
        if bench.backend is BackendName.NSJAIL:
            assert found[0] == "device"
