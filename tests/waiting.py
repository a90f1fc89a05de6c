"""Waiting for the world: one generous deadline for every test, and at its end what was waited for and what was there.

A test never asserts that something happened *within* a time. A machine may be slow for minutes; the deadline is there
so that a test of something broken ends at all. It is far longer than anything here takes, and shorter than pytest's.
"""

import ast
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

PATIENCE_SECONDS = 240.0
"""The one deadline. Also what a socket, a child process or a client is given to answer."""
SPARK_SECONDS = 5 * PATIENCE_SECONDS
"""A whole round of the fleet, with the start of Spark, is more than one thing to wait for. Its tests are ``LONGER``."""
LONGER = pytest.mark.timeout(3600)


def eventually(condition: Callable[[], object], *, pause: float = 0.05) -> None:
    """Until ``condition`` returns something true. What it raises is raised at once."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not true within {PATIENCE_SECONDS:.0f} s: {described(condition)}")
        time.sleep(pause)


def described(condition: Callable[[], object]) -> str:
    """The condition's source, and what its parts are now: "len(rows()) == 3, and len(rows()) is 2"."""
    node = _source(condition)
    if node is None:
        return repr(condition)
    seen = [f"{ast.unparse(part)} is {_value(part, condition)}" for part in _parts(node)]
    return ", and ".join([ast.unparse(node), *seen])


def _source(condition: Callable[[], object]) -> ast.expr | None:
    """The expression of a lambda; of a function its call alone can be shown."""
    code = getattr(condition, "__code__", None)
    if not isinstance(code, CodeType) or not Path(code.co_filename).is_file():
        return None
    begins = {(line, column) for line, _, column, _ in code.co_positions() if line is not None}
    for node in ast.walk(ast.parse(Path(code.co_filename).read_text())):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            inner = {(part.lineno, part.col_offset) for part in ast.walk(node.body) if isinstance(part, ast.expr)}
            if begins & inner:
                return node.body
    return None


def _parts(node: ast.expr) -> list[ast.expr]:
    """What is worth showing: the sides of comparisons, and the terms of and, or and not."""
    match node:
        case ast.BoolOp(values=values):
            return [part for value in values for part in _parts(value)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _parts(operand)
        case ast.Compare(left=left, comparators=others):
            return [part for part in (left, *others) if not isinstance(part, ast.Constant)]
    return [node]


def _value(part: ast.expr, condition: Callable[[], object]) -> str:
    names = inspect.getclosurevars(condition)
    known = {**names.builtins, **names.globals, **names.nonlocals}
    try:
        value = eval(compile(ast.Expression(part), "<condition>", "eval"), known)
    except Exception as error:  # noqa: BLE001  it describes a failure, and must not replace it
        return f"not to be had now ({error!r})"
    text = repr(value)
    return text if len(text) <= 1000 else f"{text[:1000]}…"
