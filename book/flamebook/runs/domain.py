"""Which parameters of a notebook go together: conditions that join several, declared with it and checked at the door.

A notebook may have a code cell tagged ``domain``.  Each of its lines is a condition, and the comment behind it gives
the nearest admissible value of one parameter::

    modulus > n_users * scale  # modulus = n_users * scale + 1

Only arithmetic, comparisons, ``and``, ``or``, ``not``, ``in`` and a few functions of numbers and lists are understood;
nothing is executed here.  The cell itself runs with the notebook, so that conditions call what Python has built in;
the comments may use logarithms and the like as well.
"""

import ast
import contextlib
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from flamelib.core.vocabulary import DomainError

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda one, others: one in others,
    ast.NotIn: lambda one, others: one not in others,
}
_BUILT_IN: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "sum": sum,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "exp": math.exp,
    "expm1": math.expm1,
    "floor": math.floor,
    "log": math.log,
    "log1p": math.log1p,
    "log2": math.log2,
    "sqrt": math.sqrt,
    **_BUILT_IN,
}
_PARTS = (
    *(ast.Constant, ast.Load, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.BinOp, ast.UnaryOp),
    *(ast.Call, ast.Tuple, ast.List, ast.Subscript),
)
_WORDS: dict[type[ast.AST], str] = {
    ast.Lt: "below",
    ast.LtE: "at most",
    ast.Gt: "above",
    ast.GtE: "at least",
    ast.Eq: "",
    ast.NotEq: "other than",
    ast.In: "one of",
    ast.NotIn: "none of",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One line of the cell: what has to be true, and which value of which parameter would make it so.

    >>> given = {"modulus": 601, "n_users": 20, "scale": 100}
    >>> one = read("a.ipynb", "modulus > n_users * scale  # modulus = n_users * scale + 1", given)[0]
    >>> one.sentence(given), one.nearest(given)
    ('modulus must be above n_users * scale = 2000, got 601', ('modulus', 2001))
    """

    source: str
    tree: ast.expr
    remedy: tuple[str, ast.expr] | None

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is true; arithmetic that fails is not."""
        try:
            return bool(_value(self.tree, values))
        except (ArithmeticError, ValueError):
            return False

    def nearest(self, values: Mapping[str, Any]) -> tuple[str, Any] | None:
        """A parameter and the value of it that the comment gives; ``None`` where there is none."""
        if self.remedy is None:
            return None
        try:
            return self.remedy[0], _value(self.remedy[1], values)
        except (ArithmeticError, ValueError):
            return None

    def sentence(self, values: Mapping[str, Any]) -> str:
        """What must hold, and what was given."""
        tree = self.tree
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.left, ast.Name):
            [right], [sign], name = tree.comparators, tree.ops, tree.left.id
            with contextlib.suppress(ArithmeticError, ValueError):
                value = _text(_value(right, values))
                limit = value if isinstance(right, ast.Constant) else f"{ast.unparse(right)} = {value}"
                return f"{name} must be {f'{_WORDS[type(sign)]} {limit}'.strip()}, got {_text(values[name])}"
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(values)
        return f"{self.source} must hold, got {', '.join(f'{name}={_text(values[name])}' for name in sorted(used))}"


_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.USub: "neg",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_WHOLE = ("ceil", "floor", "len", "round")  # what these return


def portable(conditions: list[Condition], floats: Collection[str]) -> list[dict[str, Any]]:
    """The conditions for a page to check: expressions as nested lists, and what a refusal says.

    Parameters
    ----------
    conditions : list of Condition
    floats : collection of str
        Parameters that are no whole numbers.
    """
    return [_portable(one, floats) for one in conditions]


def _portable(one: Condition, floats: Collection[str]) -> dict[str, Any]:
    tree = one.tree
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(_BUILT_IN)
    found: dict[str, Any] = {"holds": _written(tree), "source": one.source, "used": sorted(used)}
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.left, ast.Name):
        [right], [sign] = tree.comparators, tree.ops
        words = f"{tree.left.id} must be {_WORDS[type(sign)]}".strip()
        formula = "" if isinstance(right, ast.Constant) else f"{ast.unparse(right)} = "
        found |= {"name": tree.left.id, "words": f"{words} {formula}", "limit": _written(right)}
        found["whole"] = not _is_float(right, floats)
    return found | ({"mend": [one.remedy[0], _written(one.remedy[1])]} if one.remedy else {})


def _written(tree: ast.expr) -> Any:
    """A number or word as itself, a parameter as ``{"of": name}``, all else as ``[sign, *parts]``."""
    match tree:
        case ast.Constant():
            return tree.value
        case ast.Name():
            return {"of": tree.id}
        case ast.Tuple() | ast.List():
            return ["list", *map(_written, tree.elts)]
        case ast.Subscript():
            return ["at", _written(tree.value), _written(tree.slice)]
        case ast.BoolOp():
            return [_SIGNS[type(tree.op)], *map(_written, tree.values)]
        case ast.UnaryOp():
            return [_SIGNS[type(tree.op)], _written(tree.operand)]
        case ast.BinOp():
            return [_SIGNS[type(tree.op)], _written(tree.left), _written(tree.right)]
        case ast.Compare():
            parts = [_written(part) for part in (tree.left, *tree.comparators)]
            pairs = [[_SIGNS[type(sign)], *parts[at : at + 2]] for at, sign in enumerate(tree.ops)]
            return pairs[0] if len(pairs) == 1 else ["and", *pairs]
        case ast.Call(func=ast.Name(id=name)):
            return [name, *map(_written, tree.args)]
    raise ValueError(f"not understood: {ast.unparse(tree)}")


def _is_float(tree: ast.expr, floats: Collection[str]) -> bool:
    """Whether the value is no whole number to Python, whatever it is worth."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        if tree.func.id in _WHOLE:
            return False
        return tree.func.id not in _BUILT_IN or any(_is_float(part, floats) for part in tree.args)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
        return True
    if isinstance(tree, ast.Name):
        return tree.id in floats
    if isinstance(tree, ast.Constant):
        return isinstance(tree.value, float)
    return any(_is_float(part, floats) for part in ast.iter_child_nodes(tree) if isinstance(part, ast.expr))


def read(where: str, source: str, names: Collection[str]) -> list[Condition]:
    """The conditions of a cell on parameters of these names, line by line.

    Raises
    ------
    DomainError
        If a line is not understood.
    """
    found = []
    for number, line in enumerate(source.splitlines(), start=1):
        condition, _, remedy = (part.strip() for part in line.partition("#"))
        if not condition:
            continue
        try:
            tree = _checked(condition, names, _BUILT_IN)
            name, _, value = (part.strip() for part in remedy.partition("="))
            mending = (name, _checked(value, names, _FUNCTIONS)) if remedy else None
        except SyntaxError:
            raise DomainError(f"the domain cell of {where} must hold conditions, line {number} is {line!r}") from None
        found.append(Condition(condition, tree, mending))
    return found


def broken(conditions: list[Condition], values: Mapping[str, Any]) -> Condition | None:
    """The first condition that does not hold; ``None`` if all do."""
    return next((one for one in conditions if not one.holds(values)), None)


def _checked(source: str, names: Collection[str], functions: Collection[str]) -> ast.expr:
    """The expression, if nothing is in it but what :func:`_value` understands."""
    tree = ast.parse(source, mode="eval").body
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and not node.keywords}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            known = node.id in (functions if node in called else names)
        else:
            known = isinstance(node, _PARTS) or type(node) in _OPERATORS
        if not known or (isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)):
            raise SyntaxError(ast.unparse(tree))
    return tree


def _value(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    def of(part: ast.expr) -> Any:
        return _value(part, values)

    match tree:
        case ast.Constant():
            return tree.value
        case ast.Name():
            return values[tree.id]
        case ast.Tuple() | ast.List():
            return [of(part) for part in tree.elts]
        case ast.Subscript():
            return of(tree.value)[of(tree.slice)]
        case ast.BoolOp(op=ast.And()):
            return all(of(part) for part in tree.values)
        case ast.BoolOp():
            return any(of(part) for part in tree.values)
        case ast.UnaryOp():
            return _OPERATORS[type(tree.op)](of(tree.operand))
        case ast.BinOp():
            return _OPERATORS[type(tree.op)](of(tree.left), of(tree.right))
        case ast.Compare():
            parts = [of(part) for part in (tree.left, *tree.comparators)]
            signs = [_OPERATORS[type(sign)] for sign in tree.ops]
            return all(sign(parts[at], parts[at + 1]) for at, sign in enumerate(signs))
        case ast.Call(func=ast.Name(id=name)):
            return _FUNCTIONS[name](*(of(part) for part in tree.args))
    raise ValueError(f"not understood: {ast.unparse(tree)}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
