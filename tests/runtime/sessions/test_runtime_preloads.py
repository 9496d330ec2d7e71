"""Code that computes with numpy or sympy finds them ready, in a process, and keeps what it had before."""

from __future__ import annotations

import pytest

from runtime.backends.packages import find_packages
from runtime.sandbox import CallStatus, Limits, Session, Tier
from runtime.sessions import Sessions
from runtime.sessions.purity import classify
from runtime.sessions.starts import FAMILIES, PRELOADED, joined, preload_for, profile
from runtime.settings import RuntimeSettings

NUMPY, SYMPY = (family.modules for family in FAMILIES)
ALGEBRA = """import sympy
x = sympy.symbols('x')
print(sympy.integrate(sympy.sin(x) ** 2, x), sympy.solve(x ** 2 - 2), sympy.factor(x ** 4 - 1), sympy.simplify(x - x),
      sympy.limit(sympy.sin(x) / x, x, 0), sympy.factorint(360), sympy.N(sympy.pi, 20), sympy.diff(x ** x, x),
      sympy.Matrix([[1, 2], [3, 4]]).inv(), sympy.solveset(sympy.sin(x), x), sympy.summation(1 / x ** 2, (x, 1, 9)))
"""
NUMBERS = """import numpy as np
from scipy import integrate, optimize
print(np.linalg.solve(np.eye(3), np.ones(3)).sum(), np.fft.fft([1, 2])[0].real, np.polyfit([1, 2, 3], [1, 4, 9], 2)[0],
      round(optimize.brentq(lambda v: v * v - 2, 0, 2), 6), round(integrate.quad(np.sin, 0, 1)[0], 6))
"""


def says(session: Session, code: str) -> str:
    result = session.run(code)
    assert result.status is CallStatus.OK, result
    return result.output


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import numpy", NUMPY),
        ("from scipy.optimize import brentq", NUMPY),
        ("import mpmath, os", SYMPY),
        ("import sympy\nimport numpy as np", NUMPY + SYMPY),
        ("import random", ()),
        ("mynumpy = 1", ()),
    ],
)
def test_what_a_source_mentions_is_loaded_with_its_family(source: str, modules: tuple[str, ...]) -> None:
    assert preload_for(source) == modules
    assert joined(modules, SYMPY) == (NUMPY + SYMPY if NUMPY[0] in modules else SYMPY)


def test_a_process_computes_with_what_its_image_has_and_nothing_else() -> None:
    assert classify("import numpy.linalg", PRELOADED).tier is Tier.PROCESS
    assert classify("from sympy import Symbol", PRELOADED).tier is Tier.PROCESS
    assert classify("import numpy", frozenset()).tier is Tier.SANDBOX
    assert classify("import numpy, os", PRELOADED).tier is Tier.SANDBOX


def test_what_is_preloaded_comes_on_top_of_a_sessions_limits(settings: RuntimeSettings) -> None:
    limits = Limits(memory_mib=128)
    plain, loaded = profile("process", (), limits, settings), profile("process", NUMPY, limits, settings)
    assert loaded.memory_mib > plain.memory_mib
    assert loaded.process_memory_mib > plain.process_memory_mib
    assert loaded.preload == NUMPY


@pytest.fixture
def packages() -> None:
    assert find_packages() is not None, "install.sh builds the packages of guests"


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("code", [ALGEBRA, NUMBERS], ids=["sympy", "numpy"])
def test_mathematics_needs_no_file(pool: Sessions, code: str) -> None:
    with pool.open() as session:
        says(session, "kept = 5")
        says(session, code)
        assert session.tier is Tier.PROCESS
        assert says(session, "print(kept)") == "5\n"


@pytest.mark.usefixtures("packages")
def test_a_session_goes_from_a_plain_process_to_one_with_more_and_to_a_sandbox(pool: Sessions) -> None:
    with pool.open() as session:
        says(session, "import random\na = random.random()")
        drawn = says(session, "print(a)")
        says(session, "import numpy as np\nb = np.random.rand()\nc = np.arange(3)")
        assert session.tier is Tier.PROCESS
        more = says(session, "print(b, c)")
        says(session, "import sympy")
        assert session.tier is Tier.PROCESS
        says(session, "open('/work/a', 'w').write('x')")
        assert session.tier is Tier.SANDBOX
        assert says(session, "print(a)") == drawn
        assert says(session, "print(b, c)") == more
        assert session.usage.moves == 3


@pytest.mark.usefixtures("packages")
def test_what_is_imported_only_when_it_is_used_moves_the_session_to_where_there_are_files(pool: Sessions) -> None:
    with pool.open() as session:
        says(session, "import numpy, sympy\nx = 2")  # both, as above: every other set of modules is another image
        assert session.tier is Tier.PROCESS
        assert says(session, "import sympy.liealgebras.root_system\nprint(x)") == "2\n"
        assert session.tier is Tier.SANDBOX
