"""Which parameters of a notebook go together: conditions that join several, declared with it and checked at the door.

A notebook may have a code cell tagged ``domain``.  Each of its lines is a condition, and the comment behind it gives
the nearest admissible value of one parameter::

    modulus > n_users * scale  # modulus = n_users * scale + 1

Conditions on one parameter with a constant narrow its domain, so that what is listed is what is accepted.  Only
arithmetic, comparisons, ``and``, ``or``, ``not``, ``in`` and a few functions of numbers and lists are understood;
nothing is executed here.  The cell itself runs with the notebook, so that conditions call what Python has built in;
the comments may use logarithms and the like as well.
"""

import ast
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flamelib.core.vocabulary import Domain, DomainError

# Of a sign: what it computes, how a page is told of it, and how a sentence says it.
_SIGNS: dict[type[ast.AST], tuple[Callable[..., Any], str, str]] = {
    ast.Add: (operator.add, "+", ""),
    ast.Sub: (operator.sub, "-", ""),
    ast.Mult: (operator.mul, "*", ""),
    ast.Div: (operator.truediv, "/", ""),
    ast.FloorDiv: (operator.floordiv, "//", ""),
    ast.Mod: (operator.mod, "%", ""),
    ast.Pow: (operator.pow, "**", ""),
    ast.USub: (operator.neg, "neg", ""),
    ast.Not: (operator.not_, "not", ""),
    ast.Lt: (operator.lt, "<", "below"),
    ast.LtE: (operator.le, "<=", "at most"),
    ast.Gt: (operator.gt, ">", "above"),
    ast.GtE: (operator.ge, ">=", "at least"),
    ast.Eq: (operator.eq, "==", ""),
    ast.NotEq: (operator.ne, "!=", "other than"),
    ast.In: (lambda one, others: one in others, "in", "one of"),
    ast.NotIn: (lambda one, others: one not in others, "not in", "none of"),
}
_BUILT_IN: dict[str, Callable[..., Any]] = {one.__name__: one for one in (abs, len, max, min, round, sum)}
_FUNCTIONS: dict[str, Callable[..., Any]] = _BUILT_IN | {
    name: getattr(math, name) for name in ("ceil", "exp", "expm1", "floor", "log", "log1p", "log2", "sqrt")
}
_PARTS = (
    *(ast.Constant, ast.Load, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.BinOp, ast.UnaryOp),
    *(ast.Call, ast.Tuple, ast.List, ast.Subscript),
)
_PAIRS = ((ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn))
_NEGATED: dict[type[ast.AST], type[ast.cmpop]] = {**dict(_PAIRS), **{other: one for one, other in _PAIRS}}
_MIRRORED: dict[type[ast.AST], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_MIRRORED |= {ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
_OF_A_LIST = {
    "len": "the number of entries of",
    "min": "the smallest entry of",
    "max": "the largest entry of",
    "sum": "the sum of",
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
        return _told([*_rule(self.tree), ", got ", *_given(self.tree)], values)

    @property
    def rule(self) -> str:
        """What must hold, of no values in particular.

        >>> read("a.ipynb", "max(kept, 2) * rounds <= n_users  # rounds = 1", ["kept", "rounds", "n_users"])[0].rule
        'max(kept, 2) * rounds must be at most n_users'
        """
        return "".join(part for part in _rule(self.tree) if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class _Value:
    """In a sentence: the value of an expression, after ``before``; left out where it has none."""

    tree: ast.expr
    before: str = ""


def _told(parts: list[str | _Value], values: Mapping[str, Any]) -> str:
    said = ""
    for one in parts:
        try:
            said += one if isinstance(one, str) else one.before + _text(_value(one.tree, values))
        except (ArithmeticError, ValueError):
            continue
    return said


def _rule(tree: ast.expr) -> list[str | _Value]:
    """What a condition says, as a sentence about its left side; the middle of a chain is what it is about."""
    match tree:
        case ast.BoolOp(op=sign, values=parts):
            joined = list[str | _Value]()
            for part in parts:
                joined += [" and " if isinstance(sign, ast.And) else " or ", *_rule(part)]
            return joined[1:]
        case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(ops=[sign]) as inner):
            return _rule(ast.Compare(inner.left, [_NEGATED[type(sign)]()], inner.comparators))
        case ast.Compare():
            (left, sign, right), *more = _pairs(tree)
            if more and type(sign) in _MIRRORED:
                left, sign, right = right, _MIRRORED[type(sign)](), left
            clauses = [(sign, right), *((sign, right) for _, sign, right in more)]
            said = list[str | _Value]([f"{_subject(left)} must be"])
            for number, (sign, limit) in enumerate(clauses):
                said += [" and" * (number > 0), f" {_SIGNS[type(sign)][2]}".rstrip(), " ", *_limit(limit)]
            return said
    return [f"{ast.unparse(tree)} must hold"]


def _pairs(tree: ast.Compare) -> list[tuple[ast.expr, ast.cmpop, ast.expr]]:
    parts = [tree.left, *tree.comparators]
    return [(parts[at], sign, parts[at + 1]) for at, sign in enumerate(tree.ops)]


def _subject(tree: ast.expr) -> str:
    match tree:
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=of)]) if name in _OF_A_LIST:
            return f"{_OF_A_LIST[name]} {of}"
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[*parts, last]) if parts:
            which = "largest" if name == "max" else "smallest"
            return f"the {which} of {', '.join(map(ast.unparse, parts))} and {ast.unparse(last)}"
    return ast.unparse(tree)


def _limit(tree: ast.expr) -> list[str | _Value]:
    if isinstance(tree, ast.List | ast.Tuple):
        return [", ".join(_text(_value(one, {})) for one in tree.elts)]
    return [ast.unparse(tree), _Value(tree, " = ")] if _names(tree) else [_text(_value(tree, {}))]


def _given(tree: ast.expr) -> list[str | _Value]:
    """What a refusal says was given: the value of the parameter that it is about, or all that are used."""
    about = [left for left, *_ in _pairs(tree)] if isinstance(tree, ast.Compare) else []
    about = [one for one in about if not isinstance(one, ast.Constant)]
    if len(about) == 1 and isinstance(about[0], ast.Name):
        return [_Value(about[0])]
    return [
        part
        for number, name in enumerate(sorted(_names(tree)))
        for part in (", " * (number > 0), _Value(ast.Name(name), f"{name}="))
    ]


def _names(tree: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(_FUNCTIONS)


# --- one parameter and a constant --------------------------------------------------------------------


def narrow(domain: Domain, name: str, conditions: Iterable[Condition]) -> Domain:
    """The domain of a parameter, or of each entry of a list, as far as these conditions alone narrow it.

    >>> found = read("a.ipynb", "0 < delta <= 0.5\\nmin(sizes) >= 3\\nlen(sizes) == 2", ["delta", "sizes"])
    >>> str(narrow(Domain("", low=0, high=1), "delta", found)), str(narrow(Domain(""), "sizes", found))
    ('a number in (0, 0.5]', 'a number of at least 3')
    """
    for one in conditions:
        for of, sign, limit in _narrowing(one.tree):
            if of == name:
                domain = _narrowed(domain, sign, limit)
    return domain


def entries(name: str, conditions: Iterable[Condition]) -> str:
    """How many entries a list has to have, in words; empty where that is free."""
    for part in (part for one in conditions for part in _parts_of(one.tree)):
        match part:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=of)]), ops=[sign], comparators=[limit]
            ) if of == name:
                return _told([f" of {_SIGNS[type(sign)][2]} ", *_limit(limit)], {}).replace("  ", " ")
    return ""


def together(conditions: list[Condition]) -> list[Condition]:
    """The conditions that join several parameters, or say more of one than a domain can."""
    return [one for one in conditions if len(list(_narrowing(one.tree))) < len(list(_parts_of(one.tree)))]


def _parts_of(tree: ast.expr) -> Iterator[ast.expr]:
    """What has to hold in addition to one another; the largest of several is above each of them."""
    match tree:
        case ast.BoolOp(op=ast.And()):
            for part in tree.values:
                yield from _parts_of(part)
        case ast.Compare():
            for left, sign, right in _pairs(tree):
                match left, sign:
                    case (ast.Call(func=ast.Name(id="max"), args=[_, _, *_] as several), ast.LtE() | ast.Lt()) | (
                        ast.Call(func=ast.Name(id="min"), args=[_, _, *_] as several), ast.GtE() | ast.Gt()
                    ):  # fmt: skip
                        yield from (ast.Compare(one, [sign], [right]) for one in several)
                    case _:
                        yield ast.Compare(left, [sign], [right])
        case _:
            yield tree


def _narrowing(tree: ast.expr) -> Iterator[tuple[str, ast.cmpop, Any]]:
    for part in _parts_of(tree):
        match part:
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                if not _names(left) and type(sign) in _MIRRORED:
                    left, sign, right = right, _MIRRORED[type(sign)](), left
                if _names(right):
                    continue
                match left, sign:
                    case (ast.Name(id=name), ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.In()):
                        yield name, sign, _value(right, {})
                    case (ast.Call(func=ast.Name(id="min"), args=[ast.Name(id=name)]), ast.Gt() | ast.GtE()) | (
                        ast.Call(func=ast.Name(id="max"), args=[ast.Name(id=name)]), ast.Lt() | ast.LtE()
                    ):  # fmt: skip
                        yield name, sign, _value(right, {})


def _narrowed(domain: Domain, sign: ast.cmpop, limit: Any) -> Domain:
    match sign:
        case ast.In():
            return replace(domain, choices=tuple(limit))
        case ast.Gt() | ast.GtE():
            opened = isinstance(sign, ast.Gt)
            if limit > domain.low or (limit == domain.low and opened):
                # The number 0 for itself goes with what is beyond it.
                return replace(domain, low=limit, open_low=opened, least=domain.least if limit < 0 else 0.0)
        case _:
            opened = isinstance(sign, ast.Lt)
            if limit < domain.high or (limit == domain.high and opened):
                return replace(domain, high=limit, open_high=opened)
    return domain


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
    def parts(told: list[str | _Value]) -> list[Any]:
        return [
            part if isinstance(part, str) else [part.before, _written(part.tree), not _is_float(part.tree, floats)]
            for part in told
        ]

    told = parts([*_rule(one.tree), ", got ", *_given(one.tree)])
    found: dict[str, Any] = {"holds": _written(one.tree), "told": told}
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
            return ["and" if isinstance(tree.op, ast.And) else "or", *map(_written, tree.values)]
        case ast.UnaryOp():
            return [_SIGNS[type(tree.op)][1], _written(tree.operand)]
        case ast.BinOp():
            return [_SIGNS[type(tree.op)][1], _written(tree.left), _written(tree.right)]
        case ast.Compare():
            parts = [_written(part) for part in (tree.left, *tree.comparators)]
            pairs = [[_SIGNS[type(sign)][1], *parts[at : at + 2]] for at, sign in enumerate(tree.ops)]
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
            known = isinstance(node, _PARTS) or type(node) in _SIGNS
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
            return _SIGNS[type(tree.op)][0](of(tree.operand))
        case ast.BinOp():
            return _SIGNS[type(tree.op)][0](of(tree.left), of(tree.right))
        case ast.Compare():
            parts = [of(part) for part in (tree.left, *tree.comparators)]
            signs = [_SIGNS[type(sign)][0] for sign in tree.ops]
            return all(sign(parts[at], parts[at + 1]) for at, sign in enumerate(signs))
        case ast.Call(func=ast.Name(id=name)):
            return _FUNCTIONS[name](*(of(part) for part in tree.args))
    raise ValueError(f"not understood: {ast.unparse(tree)}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
