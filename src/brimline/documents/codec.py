"""Frozen dataclasses as JSON and back: the one place where a document's shape meets its bytes.

A member is called as its field, in camelCase. What is unknown is ``null``. A reader ignores members that it does not
know, and takes the default where one is missing that it knows: so a version before and a version after can talk.
Everything else must have its type, or ``ValueError`` names the member.

What has a reader of its own: entries of the ledger and plans (they are strict), a snapshot's header (its names are
those of the tables' columns), and whatever runs where nothing of this can be imported.

``field(metadata=…)`` says what is special: ``omitted`` (not written when it is ``None``), ``write`` and ``read`` (other
functions than the type's own).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from brimline.model.times import read_time, time_text

Json = Mapping[str, object]
Document = TypeVar("Document")
_Read = Callable[[Any], Any]


def to_json(value: object) -> Any:
    """Of dataclasses, enums, moments, UUIDs, and tuples and mappings of these."""
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(member) for key, member in value.items()}
    if is_dataclass(value):
        return {
            name: (write or to_json)(member)
            for name, attribute, write, is_omitted in _writers(value.__class__)
            if (member := getattr(value, attribute)) is not None or not is_omitted
        }
    assert isinstance(value, tuple | list), f"{type(value).__name__} has no form in JSON"
    return [to_json(member) for member in value]


def from_json(kind: type[Document], document: object) -> Document:
    """``ValueError`` says what is wrong, and where."""
    hint: Any = kind
    read: Document = _reader(hint)(document)
    return read


def read_json(kind: type[Document], text: str | bytes) -> Document:
    """As ``from_json``, of what was written. ``object`` is for what is read in two steps."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return from_json(kind, document)


def like(kind: type[Document], source: object, /, **more: object) -> Document:
    """One of ``kind``: what is called the same in ``source``, and ``more``."""
    members: Any = kind
    same = {each.name: getattr(source, each.name) for each in fields(members) if each.name not in more}
    return kind(**same, **more)


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@cache
def _writers(kind: type) -> list[tuple[str, str, _Read | None, bool]]:
    return [
        (camel_case(each.name), each.name, each.metadata.get("write"), each.metadata.get("omitted", False))
        for each in fields(kind)
    ]


@cache
def _reader(hint: Any) -> _Read:
    if hint is Any or hint is object:
        return lambda value: value
    if hasattr(hint, "__supertype__"):  # a NewType
        return _reader(hint.__supertype__)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (only,) = (each for each in arguments if each is not NoneType)
        read = _reader(only)
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        return _sequence(_reader(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_key if arguments[0] is not str else str, _reader(arguments[1]))
    if is_dataclass(hint):
        return _object(hint)
    return _SCALARS.get(hint) or _named(hint)


def _object(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    members = [
        (camel_case(each.name), each, each.metadata.get("read") or _reader(hints[each.name])) for each in fields(kind)
    ]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{value!r:.80} is not an object")
        return kind(**{each.name: _member(value, name, each, reader) for name, each, reader in members})

    return read


def _member(document: dict[str, Any], name: str, member: Field[Any], read: _Read) -> Any:
    if name not in document:
        if member.default is not MISSING:
            return member.default
        if member.default_factory is not MISSING:
            return member.default_factory()
        raise ValueError(f"{name} is missing")
    try:
        return read(document[name])
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{name}: {problem}") from problem


def _sequence(read: _Read) -> _Read:
    return lambda value: tuple(read(member) for member in _checked(value, list, "a list"))


def _mapping(key: _Read, read: _Read) -> _Read:
    return lambda value: {key(name): read(member) for name, member in _checked(value, dict, "an object").items()}


def _key(name: str) -> int:
    """JSON has no numbers there."""
    if not name.isdecimal():
        raise ValueError(f"{name!r:.80} is not a whole number")
    return int(name)


def _named(kind: type[Enum]) -> _Read:
    return lambda value: kind(value)


def _checked(value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r:.80} is not {what}")
    return value


_SCALARS: dict[Any, _Read] = {
    str: lambda value: _checked(value, str, "a text"),
    int: lambda value: _checked(value, int, "a whole number"),
    float: lambda value: float(_checked(value, (int, float), "a number")),
    bool: lambda value: _checked(value, bool, "true or false"),
    datetime: lambda value: read_time(_checked(value, str, "a time")),
    UUID: lambda value: UUID(_checked(value, str, "an id")),
}
