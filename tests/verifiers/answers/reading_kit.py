"""Values as short text, and values written out again as people write them: the other direction of the reader."""

from __future__ import annotations

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v


def shown(thing: object) -> str:
    """One line that says what was read: every operation in brackets, every kind of value by a sign of its own."""
    match thing:
        case n.Number(value):
            return str(value)
        case n.Symbol(name) | n.Constant(name):
            return name
        case n.Negation(of):
            return f"-({shown(of)})"
        case n.Sum(parts):
            return f"({'+'.join(map(shown, parts))})"
        case n.Product(parts):
            return f"({'*'.join(map(shown, parts))})"
        case n.Quotient(above, below):
            return f"({shown(above)}/{shown(below)})"
        case n.Power(base, exponent):
            return f"{shown(base)}^{shown(exponent)}"
        case n.FunctionCall(function, arguments):
            return f"{function}[{','.join(map(shown, arguments))}]"
        case n.ComparisonNode(operands, relations):
            written = [shown(operands[0])]
            for relation, operand in zip(relations, operands[1:], strict=True):
                written += [relation, shown(operand)]
            return " ".join(written)
        case v.Scalar(of):
            return shown(of)
        case v.Quantity(of, unit):
            return f"{shown(of)} {' '.join(f'{name}^{power}' if power != 1 else name for name, power in unit)}"
        case v.BaseNumber(digits, base):
            return f"{digits} base {base}"
        case v.Infinity(sign):
            return "oo" if sign > 0 else "-oo"
        case v.Tuple(items):
            return f"tuple({', '.join(map(shown, items))})"
        case v.Listing(items):
            return f"list({', '.join(map(shown, items))})"
        case v.FiniteSet(items):
            return f"{{{', '.join(map(shown, items))}}}"
        case v.Interval(low, high, closed_low, closed_high):
            return f"{'[' if closed_low else ']'}{shown(low)}, {shown(high)}{']' if closed_high else '['}"
        case v.NumberSet(name):
            return f"set {name}"
        case v.SetOperation(operation, parts):
            return f"{operation}({', '.join(map(shown, parts))})"
        case v.Builder(symbol, within, condition):
            inside = f" in {shown(within)}" if within is not None else ""
            return f"all {symbol}{inside}" + (f" with {shown(condition)}" if condition is not None else "")
        case v.RelationValue(joined, parts):
            return f" {joined} ".join(f"({shown(part)})" if len(parts) > 1 else shown(part) for part in parts)
        case v.Named(name, value):
            return f"{shown(name)} := {shown(value)}"
        case v.Matrix(rows):
            return f"matrix({'; '.join(', '.join(map(shown, row)) for row in rows)})"
        case v.Images(of, symbol, within, name):
            about = f"{name} among " if name else ""
            return f"{about}images {', '.join(map(shown, of))} of {symbol} in {shown(within)}"
        case v.Ratio(items):
            return f"ratio({', '.join(map(shown, items))})"
        case v.Piecewise(branches):
            return f"cases({'; '.join(f'{shown(of)} if {shown(on) if on else None}' for of, on in branches)})"
        case v.Approximated(of, _, near):
            return f"{shown(of)} about {shown(near)}"
        case v.Choice(label):
            return f"choice {label}"
        case v.TextAnswer(text):
            return f"words {text}"
    raise AssertionError(thing)


SIGNS = {"==": "=", "!=": r"\ne", "<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}
PLAIN_SIGNS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
OPERATIONS = {"union": r"\cup", "intersection": r"\cap", "difference": r"\setminus"}


class Writer:
    """Writes values in LaTeX or in plain mathematics, with brackets around every operand that is no atom."""

    def __init__(self, *, latex: bool) -> None:
        self.latex = latex

    def operand(self, node: n.Expression) -> str:
        text = self.expression(node)
        whole = isinstance(node, n.Number | n.Symbol | n.Constant | n.FunctionCall)
        return text if whole else (rf"\left({text}\right)" if self.latex else f"({text})")

    def expression(self, node: n.Expression) -> str:
        match node:
            case n.Number(value):
                return str(value)
            case n.Symbol(name):
                return rf"\{name} " if self.latex and len(name) > 1 else name
            case n.Constant(name):
                return r"\pi " if self.latex and name == "pi" else name
            case n.Negation(of):
                return f"-{self.operand(of)}"
            case n.Sum((first, *others)):
                rest = [
                    f" - {self.operand(term.of)}" if isinstance(term, n.Negation) else f" + {self.operand(term)}"
                    for term in others
                ]
                return self.operand(first) + "".join(rest)
            case n.Product(factors):
                return (r" \cdot " if self.latex else "*").join(map(self.operand, factors))
            case n.Quotient(above, below):
                if self.latex:
                    return rf"\frac{{{self.expression(above)}}}{{{self.expression(below)}}}"
                return f"{self.operand(above)}/{self.operand(below)}"
            case n.Power(base, exponent):
                under = self.operand(base)
                if isinstance(base, n.FunctionCall):
                    under = f"({under})"
                return (
                    f"{under}^{{{self.expression(exponent)}}}"
                    if self.latex
                    else f"{under}^({self.expression(exponent)})"
                )
            case n.FunctionCall("sqrt", (of,)) if self.latex:
                return rf"\sqrt{{{self.expression(of)}}}"
            case n.FunctionCall("abs", (of,)):
                return rf"\left|{self.expression(of)}\right|" if self.latex else f"abs({self.expression(of)})"
            case n.FunctionCall(function, arguments):
                name = rf"\{function}" if self.latex and len(function) > 1 else function
                return f"{name}({', '.join(map(self.expression, arguments))})"
        raise AssertionError(node)

    def end(self, end: n.Expression | v.Infinity) -> str:
        return self.value(end) if isinstance(end, v.Infinity) else self.expression(end)

    def comparison(self, comparison: n.ComparisonNode) -> str:
        signs = SIGNS if self.latex else PLAIN_SIGNS
        text = self.expression(comparison.operands[0])
        for relation, operand in zip(comparison.relations, comparison.operands[1:], strict=True):
            text += f" {signs[relation]} {self.expression(operand)}"
        return text

    def value(self, value: v.Value) -> str:
        match value:
            case v.Scalar(of):
                return self.expression(of)
            case v.Quantity(of, unit):
                atoms = " ".join(name if power == 1 else f"{name}^{{{power}}}" for name, power in unit)
                return rf"{self.expression(of)} \text{{ {atoms}}}" if self.latex else f"{self.expression(of)} {atoms}"
            case v.BaseNumber(digits, base):
                return f"{digits}_{{{base}}}"
            case v.Infinity(sign):
                name = r"\infty" if self.latex else "∞"
                return name if sign > 0 else f"-{name}"
            case v.Tuple(items):
                return f"({', '.join(map(self.value, items))})"
            case v.Listing(items):
                return ", ".join(map(self.value, items))
            case v.FiniteSet(items):
                inside = ", ".join(map(self.value, items))
                return rf"\{{{inside}\}}" if self.latex else f"{{{inside}}}"
            case v.Interval(low, high, closed_low, closed_high):
                opening, closing = "[" if closed_low else "(", "]" if closed_high else ")"
                return f"{opening}{self.end(low)}, {self.end(high)}{closing}"
            case v.NumberSet("N0"):
                return r"\mathbb{N}_0"
            case v.NumberSet(name):
                return rf"\mathbb{{{name}}}"
            case v.SetOperation(operation, parts):
                texts = [
                    f"({self.value(part)})" if isinstance(part, v.SetOperation) else self.value(part) for part in parts
                ]
                return f" {OPERATIONS[operation]} ".join(texts)
            case v.Builder(symbol, within, condition):
                member = symbol if within is None else rf"{symbol} \in {self.value(within)}"
                return member if condition is None else rf"\{{{member} \mid {self.value(condition)}\}}"
            case v.RelationValue(joined, parts):
                word = rf"\text{{ {joined} }}" if self.latex else f" {joined} "
                return word.join(
                    self.comparison(part) if isinstance(part, n.ComparisonNode) else self.value(part) for part in parts
                )
            case v.Named(name, inner):
                return f"{self.value(name)} = {self.value(inner)}"
            case v.Matrix(rows):
                if self.latex:
                    lines = r" \\ ".join(" & ".join(map(self.expression, row)) for row in rows)
                    return rf"\begin{{pmatrix}} {lines} \end{{pmatrix}}"
                return f"[{', '.join('[' + ', '.join(map(self.expression, row)) + ']' for row in rows)}]"
            case v.Images(of, symbol, within, name):
                head = f"{name} = " if name else ""
                return f"{head}{', '.join(map(self.expression, of))}, {symbol} \\in {self.value(within)}"
            case v.Ratio(items):
                return ":".join(map(self.operand, items))
            case v.Piecewise(branches):
                lines = r" \\ ".join(
                    f"{self.expression(of)} & {self.value(on) if on else 'otherwise'}" for of, on in branches
                )
                return rf"\begin{{cases}} {lines} \end{{cases}}"
            case v.Approximated(of, _, near):
                return rf"{self.value(of)} \approx {self.expression(near)}"
            case v.Choice(label):
                return rf"\text{{({label})}}" if self.latex else f"({label})"
            case v.TextAnswer(text):
                return rf"\text{{{text}}}" if self.latex else text
        raise AssertionError(value)
