"""Interpreters and compilers for whole programs.

A language is listed if its usual interpreter has one usual path in an image. If the image lacks it, the sandbox reports
that and the submission is refused there.
"""

from __future__ import annotations

import re

from verifiers.programs.spec import ProgramSpec, Tool

FILE = "{file}"
PYTHON = ("/usr/bin/python3", "-P", "-s")
"""Python command. Without -I, which would also ignore the hash seed; the environment is the sandbox's own."""
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
    """Returns the commands that build and run a program's source. A Python program that mentions one of the guest's
    packages gets them on its path; others start faster without."""
    if spec.tool is not None:
        return spec.tool
    if spec.language == "python" and MENTIONED.search(source):
        return Tool(file="program.py", run=(*PYTHON, "-c", WITH_PACKAGES, FILE))
    return KNOWN[spec.language]
