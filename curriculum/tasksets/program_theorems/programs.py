"""Random theories: programs on numbers, lists, trees and stack machines, with the lemmas that their proofs need.

Invariant: the order of lemmas is that in which they are proven; associativity comes before commutativity, so that sums
are nested to the right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from curriculum.tasksets.program_theorems.theory import Theory

NUMBERS = """
type N = z | s N
plus : N N -> N
plus z y = y
plus (s x) y = {plus}
lemma plus_s : plus x (s y) = s (plus x y)
lemma plus_z : plus x z = x
lemma plus_assoc : plus (plus x y) w = plus x (plus y w)
lemma plus_comm : plus x y = plus y x
lemma plus_left : plus x (plus y w) = plus (plus x y) w = plus (plus y x) w = plus y (plus x w)
"""
TIMES = """
times : N N -> N
times z y = z
times (s x) y = {times}
lemma times_z : times x z = z
lemma plus_times : times (plus x y) w = plus (times x w) (times y w)
lemma times_assoc : times (times x y) w = times x (times y w)
lemma times_s : times x (s y) = plus x (times x y)
lemma times_plus : times x (plus y w) = plus (times x y) (times x w)
lemma times_comm : times x y = times y x
lemma times_left : times x (times y w) = times (times x y) w = times (times y x) w = times y (times x w)
"""
LISTS = """
type L = e | c N L
app : L L -> L
app e b = b
app (c x a) b = c x (app a b)
rev : L -> L
rev e = e
rev (c x a) = app (rev a) (c x e)
lemma app_e : app a e = a
lemma app_assoc : app (app a b) d = app a (app b d)
"""
REVERSED = """
lemma rev_app : rev (app a b) = app (rev b) (rev a)
lemma rev_rev : rev (rev a) = a
"""
ONTO = """
onto : L L -> L
onto e b = b
onto (c x a) b = onto a (c x b)
lemma onto_is : onto a b = app (rev a) b
"""
ELEMENTS = ("x", "s x", "s (s x)", "z", "s z")
WEIGHTS = ("s z", "x", "s x", "plus x x", "s (s z)")


def _numbers(rng: Random, *, times: bool = False) -> str:
    """Returns the text of addition, which recurs in one of two ways, and of multiplication."""
    slow = rng.random() < 0.5
    text = NUMBERS.format(plus="plus x (s y)" if slow else "s (plus x y)")
    return text + (TIMES.format(times=rng.choice(("plus y (times x y)", "plus (times x y) y"))) if times else "")


def numbers(rng: Random) -> str:
    """Arithmetic by recursion: products, and functions with a constant step, directly and with an accumulator."""
    step = rng.randint(1, 3)
    grown = "s (" * step + "{}" + ")" * step
    text = f"""
    f : N -> N
    f z = z
    f (s x) = {grown.format("f x")}
    go : N N -> N
    go z y = y
    go (s x) y = go x ({grown.format("y")})
    lemma f_plus : f (plus x y) = plus (f x) (f y)
    lemma go_is : go x y = plus (f x) y
    lemma f_times : f (times x y) = times x (f y)
    """
    return _numbers(rng, times=True) + text


def lists(rng: Random) -> str:
    """Lists that are joined, reversed, rewritten element by element, and reversed with an accumulator."""
    return f"type N = z | s N\n{LISTS}{''.join(_rewritings(rng, rng.randint(1, 2)))}{REVERSED}{_turned()}{ONTO}"


def _rewritings(rng: Random, count: int) -> list[str]:
    """Returns functions f, g that put a few elements in the place of each; fr, gr put them in reverse order."""
    text = []
    for name, twin in ("f", "fr"), ("g", "gr"):
        elements = [rng.choice(ELEMENTS) for _ in range(rng.randint(1, 3))]
        if name == "f" or count > 1:
            text += [_rewriting(name, elements), _rewriting(twin, elements[::-1])]
        else:
            text += [_rewriting(name, ["x"]), _rewriting(twin, ["x"])]
    return text


def _rewriting(name: str, elements: list[str]) -> str:
    rest = f"{name} a"
    for element in reversed(elements):
        rest = f"c {element if len(element) == 1 else f'({element})'} ({rest})"
    return f"""
    {name} : L -> L
    {name} e = e
    {name} (c x a) = {rest}
    lemma {name}_app : {name} (app a b) = app ({name} a) ({name} b)
    """


def _turned() -> str:
    pairs = (("f", "fr"), ("fr", "f"), ("g", "gr"), ("gr", "g"))
    return "".join(f"lemma rev_{name} : rev ({name} a) = {twin} (rev a)\n" for name, twin in pairs)


def _measure(name: str, weight: str) -> str:
    return f"""
    {name} : L -> N
    {name} e = z
    {name} (c x a) = plus {weight if len(weight) == 1 else f"({weight})"} ({name} a)
    {name}go : L N -> N
    {name}go e y = y
    {name}go (c x a) y = {name}go a (plus {weight if len(weight) == 1 else f"({weight})"} y)
    lemma {name}_app : {name} (app a b) = plus ({name} a) ({name} b)
    lemma {name}_rev : {name} (rev a) = {name} a
    lemma {name}go_is : {name}go a y = plus ({name} a) y
    """


def measures(rng: Random) -> str:
    """Sums over lists, directly and with an accumulator, before and after each element is replaced."""
    elements = [rng.choice(ELEMENTS) for _ in range(rng.randint(1, 2))]
    weight = rng.choice(WEIGHTS)
    after = [weight.replace("x", f"({element})") for element in elements]
    total = after[0] if len(after) == 1 else f"plus ({after[0]}) ({after[1]})"
    text = _rewriting("f", elements) + _rewriting("fr", elements[::-1]) + REVERSED
    text += "lemma rev_f : rev (f a) = fr (rev a)\nlemma rev_fr : rev (fr a) = f (rev a)\n"
    text += _measure("m", weight) + _measure("k", total)
    text += "lemma m_f : m (f a) = k a\nlemma m_fr : m (fr a) = k a\n"
    return _numbers(rng) + LISTS + text + ONTO


def trees(rng: Random) -> str:
    """Trees that are mirrored, relabelled, flattened in order and with an accumulator, and weighed."""
    element, weight = rng.choice(ELEMENTS[:3]), rng.choice(WEIGHTS)
    change = element if len(element) == 1 else f"({element})"
    sorts = rng.choice(("T N T", "N T T", "T T N"))

    def node(left: str, label: str, right: str) -> str:
        found = iter((left, right))
        return f"b {' '.join(label if sort == 'N' else next(found) for sort in sorts.split())}"

    parts = [weight if len(weight) == 1 else f"({weight})", "(tm t)", "(tm u)"]
    rng.shuffle(parts)
    text = f"""
    type T = o | b {sorts}
    flip : T -> T
    flip o = o
    flip ({node("t", "x", "u")}) = {node("(flip u)", "x", "(flip t)")}
    mark : T -> T
    mark o = o
    mark ({node("t", "x", "u")}) = {node("(mark t)", change, "(mark u)")}
    flat : T -> L
    flat o = e
    flat ({node("t", "x", "u")}) = app (flat t) (c x (flat u))
    flatgo : T L -> L
    flatgo o a = a
    flatgo ({node("t", "x", "u")}) a = flatgo t (c x (flatgo u a))
    tm : T -> N
    tm o = z
    tm ({node("t", "x", "u")}) = plus {parts[0]} (plus {parts[1]} {parts[2]})
    lemma flip_flip : flip (flip t) = t
    lemma flip_mark : flip (mark t) = mark (flip t)
    lemma flat_flip : flat (flip t) = rev (flat t)
    lemma flat_mark : flat (mark t) = f (flat t)
    lemma flatgo_is : flatgo t a = app (flat t) a
    lemma m_flat : m (flat t) = tm t
    lemma tm_flip : tm (flip t) = tm t
    """
    lists = _rewriting("f", [element]) + REVERSED + "lemma rev_f : rev (f a) = f (rev a)\n" + _measure("m", weight)
    return _numbers(rng) + LISTS + lists + text


def machines(rng: Random) -> str:
    """Expressions, their value, and two compilers to a stack machine, one of them with a continuation."""
    meanings = rng.sample(("plus x y", "s (plus x y)", "plus x (plus y y)", "plus (s x) (s y)"), 2)
    swaps = ["i h g" if meanings[0] != "plus x (plus y y)" else "i g h", "j g h"]
    text = f"""
    type E = l N | i E E | j E E
    type P = v | k N P | i1 P | j1 P
    value : E -> N
    value (l x) = x
    value (i g h) = di (value g) (value h)
    value (j g h) = dj (value g) (value h)
    turn : E -> E
    turn (l x) = l x
    turn (i g h) = {swaps[0].replace("g", "(turn g)").replace("h", "(turn h)")}
    turn (j g h) = {swaps[1].replace("g", "(turn g)").replace("h", "(turn h)")}
    """
    operations = "".join(
        f"""
    d{name} : N N -> N
    d{name} z y = {_at(meaning, "z")}
    d{name} (s x) y = {_at(meaning, "(s x)")}
    lemma d{name}_is : d{name} x y = {meaning}
    {name}x : L N -> L
    {name}x e y = c y e
    {name}x (c x a) y = c (d{name} x y) a
    {name}s : L -> L
    {name}s e = e
    {name}s (c y a) = {name}x a y
    """
        for name, meaning in zip("ij", meanings, strict=True)
    )
    machine = """
    seq : P P -> P
    seq v q = q
    seq (k x p) q = k x (seq p q)
    seq (i1 p) q = i1 (seq p q)
    seq (j1 p) q = j1 (seq p q)
    run : P L -> L
    run v a = a
    run (k x p) a = run p (c x a)
    run (i1 p) a = run p (is a)
    run (j1 p) a = run p (js a)
    code : E -> P
    code (l x) = k x v
    code (i g h) = seq (code g) (seq (code h) (i1 v))
    code (j g h) = seq (code g) (seq (code h) (j1 v))
    codego : E P -> P
    codego (l x) p = k x p
    codego (i g h) p = codego g (codego h (i1 p))
    codego (j g h) p = codego g (codego h (j1 p))
    lemma seq_v : seq p v = p
    lemma seq_assoc : seq (seq p q) r = seq p (seq q r)
    lemma run_seq : run (seq p q) a = run q (run p a)
    lemma codego_is : codego g p = seq (code g) p
    lemma run_code : run (code g) a = c (value g) a
    lemma value_turn : value (turn g) = value g
    """
    return _numbers(rng) + "type L = e | c N L\n" + operations + text + machine


def _at(meaning: str, value: str) -> str:
    return meaning.replace("x", value)


TOPICS: dict[str, Callable[[Random], str]] = {
    "numbers": numbers,
    "lists": lists,
    "measures": measures,
    "trees": trees,
    "machines": machines,
}


@lru_cache(maxsize=64)
def theory_of(text: str) -> Theory:
    """Reads a theory, or returns a recently read one. Raises UnprovenError."""
    return Theory.read(text)
