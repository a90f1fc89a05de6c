"""The guard's own log: one event a line, for people by default, as JSON on request.

::

    2026-01-31T12:00:00.000Z WARNING disk-full /data/a is full: 99.2 % used  log_dirs=/data/a used_percent=99.2

Every line has an event name that scripts can look for and a sentence that people can read; the fields repeat the
sentence's facts for machines. Nothing here decides what is worth saying; but a login within a URI is never said, in a
traceback neither.
"""

import json
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO, TypeAlias

from brimline.model.secrets import without_login
from brimline.model.times import time_text

Field: TypeAlias = str | int | float | bool | None

LOGGER = logging.getLogger("brimline.guard")
_WHOLE_PROGRAM = logging.getLogger("brimline")
listeners: list[Callable[[int, str, str], None]] = []
"""Each is told level, event and sentence of what is said, whatever the log's level is; from any thread."""


def say(level: int, event: str, sentence: str, **fields: Field) -> None:
    LOGGER.log(level, "%s", sentence, extra={"event": event, "fields": fields})
    for tell in listeners:
        tell(level, event, without_login(sentence))


def set_up(stream: TextIO, log_format: str, level: str) -> None:
    """Again is fine: a reload may change both."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLine() if log_format == "json" else _TextLine())
    _WHOLE_PROGRAM.handlers = [handler]
    _WHOLE_PROGRAM.setLevel(level.upper())
    _WHOLE_PROGRAM.propagate = False


def _timestamp(record: logging.LogRecord) -> str:
    return time_text(datetime.fromtimestamp(record.created, UTC))


def _fields(record: logging.LogRecord) -> dict[str, Field]:
    fields: dict[str, Field] = getattr(record, "fields", {})
    return {key: without_login(value) if isinstance(value, str) else value for key, value in fields.items()}


class _TextLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", record.name)
        pairs = "".join(f" {key}={_quoted(value)}" for key, value in _fields(record).items())
        sentence = _one_line(without_login(record.getMessage()))
        line = f"{_timestamp(record)} {record.levelname:<7} {event} {sentence}{' ' if pairs else ''}{pairs}"
        return f"{line}\n{_traceback(self, record)}" if record.exc_info else line


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": without_login(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = _traceback(self, record)
        return json.dumps(line, ensure_ascii=False, default=str)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return without_login(formatter.formatException(record.exc_info)) if record.exc_info else ""


def _quoted(value: Field) -> str:
    """As logfmt has it: plain where it can be, in quotes where a space or a quote would split it."""
    text = json.dumps(value) if isinstance(value, bool) or value is None else str(value)
    plain = text.isprintable() and text and not set(text) & set(' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    """Names come from outside: none of them moves the cursor of whoever reads this."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(text.splitlines()))


def say_dead_task(dead: threading.ExceptHookArgs) -> None:
    """For ``threading.excepthook``."""
    name = dead.thread.name if dead.thread else "unknown"
    LOGGER.error(
        "task %s died because of a bug and is restarted",
        name,
        exc_info=(dead.exc_type, dead.exc_value, dead.exc_traceback) if dead.exc_value else None,
        extra={"event": "task-died", "fields": {"task": name}},
    )
