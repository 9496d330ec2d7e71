"""Harness inside a candidate's sandbox: runs the source, calls functions, and reports results.

It is not a security boundary. Code beside it can read, replace and forge everything in it, and no verdict relies on it:
it contains no expected value and no input but that of the current call; its replies are parsed as data for that one
call and compared elsewhere. The nonce of a call separates what a program prints from what it returns.

An exception with the name of a built-in one that is a different class is reported as the candidate's own. A subclass of
a plain type (a named tuple, a Counter, an IntEnum) is reported as its base, a numpy scalar as the number, an array as
lists.

Anomalies that it notices (replaced names of Python, audit events caused by the source, values that claim to equal
anything) are reported as signals. They mark a failure as a likely attempt to cheat; they are no verdict.
"""

from __future__ import annotations

SOURCE = r"""
def _assay_begin(seed, most):
    import builtins, posix, sys
    write, kind_of, length, text_of = posix.write, type, len, str
    compile_, exec_, everything = compile, exec, BaseException
    getframe, find, is_a, code_of = sys._getframe, getattr, isinstance, repr
    file = "<submission>"
    noticed, told = [], set()
    busy = [False]
    frames = {"sys._getframe", "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys.settrace",
              "sys.setprofile", "sys.addaudithook"}
    always = {"os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.kill", "os.killpg",
              "subprocess.Popen", "pty.spawn", "socket.connect", "socket.bind", "sys._current_frames",
              "signal.pthread_kill"}

    def notice(word):
        if word not in told and length(told) < 40:
            told.add(word)
            noticed.append(word)

    def watch(event, args):
        if busy[0] or not (event in frames or event in always or event == "open" or event[:7] == "ctypes."):
            return
        busy[0] = True
        try:
            if event == "open":
                path = args[0]
                if kind_of(path) is text_of and getframe(1).f_code.co_filename == file:
                    wrote = kind_of(args[1]) is text_of and ("w" in args[1] or "a" in args[1] or "x" in args[1])
                    outside = path[:1] == "/" and path[:6] != "/work/" and path[:5] != "/tmp/"
                    if path[:6] == "/proc/" or (wrote and outside):
                        notice("opened " + path[:80])
            elif event in always or getframe(1).f_code.co_filename == file:
                notice(event)
        except everything:
            pass
        finally:
            busy[0] = False

    kept = []
    for module, names in ((builtins, None), (sys.modules.get("math"), None), (sys.modules.get("operator"), None),
                          (sys.modules.get("json"), ("dumps", "loads", "JSONEncoder")),
                          (sys, ("exit", "excepthook", "_getframe", "settrace", "modules", "addaudithook"))):
        if module is None:
            continue
        space = module.__dict__
        kept += [(space, name, space[name], module.__name__ + "." + name)
                 for name in (names or list(space)) if name[:2] != "__" or name in ("__import__", "__build_class__")]

    def look():
        for space, name, value, shown in kept:
            if space.get(name) is not value and name != "_":
                notice(shown + " was replaced")

    class Odd(Exception):
        pass

    none, false, true = None, False, True
    items_of = dict.items
    scalars = ((int, int.__pos__), (float, float.__pos__), (text_of, text_of.__str__), (complex, complex.__pos__),
               (bytes, lambda value: bytes(memoryview(value))))
    rows = ((list, list.__iter__, "", ""), (tuple, tuple.__iter__, '{"t": ', "}"), (set, set.__iter__, '{"s": ', "}"),
            (frozenset, frozenset.__iter__, '{"s": ', "}"))

    def text(value):
        if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
            return '"' + value + '"'
        return '{"u": "' + value.encode("utf-8", "surrogatepass").hex() + '"}'

    def real(value):
        return code_of(value) if value - value == 0.0 else '"' + code_of(value) + '"'

    def row(values, depth):
        return "[" + ", ".join([plain(item, depth) for item in values]) + "]"

    def pairs(values, depth):
        found = ["[" + plain(key, depth) + ", " + plain(item, depth) + "]" for key, item in items_of(values)]
        return '{"d": [' + ", ".join(found) + "]}"

    left = [most]

    def plain(value, depth):
        # Each value takes at least one character, so more values than that cannot be reported.
        left[0] -= 1
        if left[0] < 0:
            raise Odd("more than fits into " + code_of(most) + " bytes of output")
        kind = kind_of(value)
        if value is none:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is text_of:
            return text(value)
        if kind is int:
            return code_of(value) if -(1 << 200) < value < 1 << 200 else '{"i": "' + hex(value) + '"}'
        if kind is float:
            return code_of(value) if value - value == 0.0 else '{"f": "' + code_of(value) + '"}'
        if depth > 64:
            raise Odd("something nested more than 64 deep, which is not plain data")
        for base, items, before, behind in rows:
            if kind is base:
                return before + row(value, depth + 1) + behind
        if kind is dict:
            return pairs(value, depth + 1)
        if kind is bytes:
            return '{"b": "' + value.hex() + '"}'
        if kind is complex:
            return '{"c": [' + real(value.real) + ", " + real(value.imag) + "]}"
        library = sys.modules.get("num" + "py")
        for name, method in (("generic", "item"), ("ndarray", "tolist")):
            known = find(library, name, none)
            if kind_of(known) is kind_of and is_a(value, known):
                found = find(value, method)()
                if kind_of(found) is not kind:
                    return plain(found, depth + 1)
        try:
            if kind.__eq__ is not object.__eq__ and (value == object()) is true:
                notice("a value that equals anything")
        except everything:
            pass
        for base, as_base in scalars:
            if is_a(value, base):
                return plain(as_base(value), depth)
        for base, items, before, behind in rows:
            if is_a(value, base):
                return before + row(items(value), depth + 1) + behind
        if is_a(value, dict):
            return pairs(value, depth + 1)
        named = text_of(kind.__module__)[:60] + "." + text_of(kind.__qualname__)[:60]
        raise Odd("a " + named + ", which is not plain data")

    out = sys.stdout
    flush = out.flush

    def tell(nonce, reply):
        look()
        signals = ", ".join([text(word) for word in noticed])
        del noticed[:]
        data = ("\x1e" + nonce + " {" + reply + ', "s": [' + signals + "]}\x1e").encode()
        try:
            flush()
        except everything:
            pass
        while data:
            data = data[write(1, data):]

    built_in = {name: kind for name, kind in builtins.__dict__.items() if is_a(kind, kind_of)}
    bases_of, name_of = (kind_of.__dict__[name].__get__ for name in ("__mro__", "__name__"))

    def raised(error):
        names = []
        try:
            for kind in bases_of(kind_of(error)):
                name = name_of(kind)[:100]
                if kind is not object:
                    names.append(name if built_in.get(name, kind) is kind else "its own " + name)
        except everything:
            pass
        try:
            message = text_of(error)[:300]
        except everything:
            message = ""
        return '"r": [' + ", ".join([text(name) for name in names[:16]]) + '], "m": ' + text(message)

    def given(text):
        import json

        def value(found, kept=False):
            if kind_of(found) is list:
                return [value(item) for item in found]
            if kind_of(found) is not dict:
                return found
            [(tag, inside)] = found.items()
            if tag == "t":
                return tuple([value(item, kept) for item in inside])
            if tag == "d":
                return {value(key, true): value(item) for key, item in inside}
            if tag == "s":
                return (frozenset if kept else set)([value(item, true) for item in inside])
            if tag == "c":
                return complex(*map(float, inside))
            return bytes.fromhex(inside) if tag == "b" else float(inside) if tag == "f" else int(inside, 16)

        return value(json.loads(text))

    module = kind_of(sys)("solution")
    sys.modules["solution"] = module
    space = module.__dict__
    sys.argv = ["solution"]
    names = {}

    def load(nonce, source, wanted, driver):
        try:
            exec_(compile_(source, file, "exec", dont_inherit=true), space)
            if driver:
                own = {"__name__": "driver", "solution": module}
                exec_(compile_(driver, "<driver>", "exec", dont_inherit=true), own)
                function = own["drive"]
                call = lambda *args, **named: function(module, *args, **named)
                names[wanted] = call
            else:
                for name in wanted.split():
                    found = space.get(name)
                    if not callable(found):
                        raise NameError("the program defines no function " + name)
                    names[name] = found
        except everything as error:
            reply = raised(error)
        else:
            reply = '"l": 1'
        tell(nonce, reply)

    def call(nonce, name, /, *args, **named):
        try:
            value = names[name](*args, **named)
        except everything as error:
            reply = raised(error)
        else:
            left[0] = most
            try:
                reply = '"v": ' + plain(value, 0)
            except Odd as odd:
                reply = '"x": ' + text(odd.args[0])
            except everything as error:
                reply = '"x": ' + text("a value that cannot be serialized: " + kind_of(error).__name__)
        tell(nonce, reply)

    if seed:
        import random
        random.seed(seed)
    sys.addaudithook(watch)
    return load, call, given
"""
"""Defines `_assay_begin`, which returns the three functions that the judge calls in the candidate's main module."""


def begin(seed: int, most: int) -> str:
    """Returns the code of a session's first call, before any candidate code. A non-zero seed makes `random` differ from
    a fresh session. `most`: maximum output of a call, in bytes."""
    names = "_assay_load, _assay_call, _assay_read"
    return f"{SOURCE}\n{names} = _assay_begin({seed}, {most})\nnan, inf = float('nan'), float('inf')\n"


def load(nonce: str, source: str, wanted: str, driver: str) -> str:
    """Returns Python code that runs a program's source and looks up the functions in `wanted`, separated by spaces."""
    return f"_assay_load({nonce!r}, {source!a}, {wanted!r}, {driver!a})"


GIVEN = "*_assay_given[0], **_assay_given[1]"
"""Arguments text that refers to arguments sent before with `give`."""


def give(arguments: str) -> str:
    """Returns code that parses the next call's arguments before its time starts. They are in the format of
    `replies.tagged`, because compiling a long literal takes two hundred times its length in memory."""
    return f"_assay_given = _assay_read({arguments!a})"


def call(nonce: str, function: str, arguments: str) -> str:
    """Returns Python code that calls a program's function. `arguments` comes from `values.arguments_text`."""
    return f"_assay_call({nonce!r}, {function!r}{', ' if arguments else ''}{arguments})"
