"""How whole programs are run. A language is here when its usual interpreter has one usual place in an image; whether an
image has it is found out in the sandbox, and refused there where not."""

from __future__ import annotations

import re

from verifiers.programs.spec import ProgramSpec, Tool

FILE = "{file}"
PYTHON = ("/usr/bin/python3", "-P", "-s")
"""Not -I, which ignores the seed of the hashes, too; the environment is the sandbox's own."""
KNOWN = {
    "python": Tool(file="program.py", run=(*PYTHON, FILE)),
    "sh": Tool(file="program.sh", run=("/bin/sh", FILE)),
    "bash": Tool(file="program.sh", run=("/bin/bash", FILE)),
    "perl": Tool(file="program.pl", run=("/usr/bin/perl", FILE)),
    "awk": Tool(file="program.awk", run=("/usr/bin/awk", "-f", FILE)),
    "ruby": Tool(file="program.rb", run=("/usr/bin/ruby", FILE)),
    "lua": Tool(file="program.lua", run=("/usr/bin/lua", FILE)),
    "javascript": Tool(file="program.js", run=("/usr/bin/node", FILE)),
    "c": Tool(
        file="program.c", build=("/usr/bin/cc", "-O2", "-o", "/work/program", FILE, "-lm"), run=("/work/program",)
    ),
    "c++": Tool(
        file="program.cc",
        build=("/usr/bin/c++", "-O2", "-std=c++17", "-o", "/work/program", FILE),
        run=("/work/program",),
    ),
}
MENTIONED = re.compile(r"\b(?:numpy|scipy|sympy|mpmath)\b")
WITH_PACKAGES = (
    "import runpy, sys; sys.path.append('/opt/packages'); sys.argv = sys.argv[1:];"
    " runpy.run_path(sys.argv[0], run_name='__main__')"
)


def tool_of(spec: ProgramSpec, source: str) -> Tool:
    """A Python program that mentions one of the guest's packages finds them; another starts without looking there."""
    if spec.tool is not None:
        return spec.tool
    if spec.language == "python" and MENTIONED.search(source):
        return Tool(file="program.py", run=(*PYTHON, "-c", WITH_PACKAGES, FILE))
    return KNOWN[spec.language]
