"""Java's properties files, read as ``java.util.Properties.load(InputStream)`` reads them.

Kafka's own tools and brokers read their files that way, so a reader that only almost agrees would let a broker and
its guard live by different settings. What sets the format apart from the ``key=value`` it looks like:

- a logical line continues where a natural one ends in an odd number of backslashes; a comment never continues;
- the key ends at the first unescaped ``=``, ``:`` or white space, so ``a b=c`` sets ``a`` to ``b=c``;
- white space before a value is dropped, after it is kept;
- the same key may stand twice. The last one wins, and Java does not tell. Here both stay visible.

**Encoding.** Java takes the bytes as ISO-8859-1, so this reader does too. A file that begins with a UTF-8 byte order
mark is read as UTF-8 instead: to Java the mark would be part of the first key, so no working file changes meaning.

Properties read by type; a refusal names the key, the value, what is allowed, and where it was written.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from brimline.model.failures import BadInput
from brimline.model.secrets import HIDDEN, shown

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_NEEDED = frozenset("\\u:=#! \t\f")
"""Characters whose backslash has a purpose, besides those in ``_ESCAPES``."""


@dataclass(frozen=True, slots=True)
class PropertyEntry:
    """One ``key=value`` as written. ``line`` is where its logical line begins; ``None`` when it came from no file.

    ``dropped``: characters of the value that stood behind a backslash which means nothing, and which Java drops.
    """

    key: str
    value: str
    source: str
    line: int | None = None
    dropped: str = field(default="", compare=False)

    @property
    def where(self) -> str:
        return self.source if self.line is None else f"{self.source} line {self.line}"


class JavaProperties(Mapping[str, str]):
    """The entries of one or more sources, in order; as a mapping it answers as Java would: the last one wins."""

    def __init__(self, entries: Iterable[PropertyEntry] = ()) -> None:
        self.entries = tuple(entries)
        self._last = {entry.key: entry for entry in self.entries}

    def __getitem__(self, key: str) -> str:
        return self._last[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def entry(self, key: str) -> PropertyEntry:
        """The entry that counts, with the place it was written at."""
        return self._last[key]

    def overlaid(self, later: "JavaProperties") -> "JavaProperties":
        """These entries, then those: the later source wins where both set a key."""
        return JavaProperties(self.entries + later.entries)

    def duplicates(self) -> Mapping[str, tuple[PropertyEntry, ...]]:
        """Keys that one source sets more than once, each with all its entries. An overlay is no duplicate."""
        seen: dict[tuple[str, str], list[PropertyEntry]] = {}
        for entry in self.entries:
            seen.setdefault((entry.source, entry.key), []).append(entry)
        return {key: tuple(entries) for (_, key), entries in seen.items() if len(entries) > 1}


def load_properties(path: Path | str) -> JavaProperties:
    """Read a file. What cannot be read or understood is ``BadInput`` that names the file and the line."""
    try:
        data = Path(path).read_bytes()
    except OSError as failure:
        raise BadInput(f"cannot read the properties file {path}: {failure.strerror}") from failure
    return parse_properties(data, str(path))


def parse_properties(data: bytes, source: str) -> JavaProperties:
    """Read the bytes of a file; ``source`` is its name in messages."""
    if data.startswith(codecs.BOM_UTF8):
        try:
            text = data[len(codecs.BOM_UTF8) :].decode("utf-8")
        except UnicodeDecodeError as failure:
            line = 1 + data.count(b"\n", 0, len(codecs.BOM_UTF8) + failure.start)
            raise BadInput(f"{source} line {line}: not UTF-8, although the file has a UTF-8 byte order mark") from None
    else:
        text = data.decode("iso-8859-1")
    return JavaProperties(_entry(line, number, source) for line, number in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Logical lines without comments and blank ones, escapes still in them, each with the number of its first line.

    A line that holds nothing but the backslash that continues it has no first character yet, so a ``#`` on the next
    line begins a comment: that is what Java does.
    """
    collected = ""
    first_number = 0
    continuing = False
    for number, natural in enumerate(_natural_lines(text), start=1):
        stripped = natural.lstrip(_BLANKS)
        if not collected:
            if not stripped or stripped[0] in "#!":
                continuing = False
                continue
            first_number = first_number if continuing else number
        ends_in_backslash = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        collected += stripped[:-1] if ends_in_backslash else stripped
        continuing = ends_in_backslash
        if not ends_in_backslash:
            yield collected, first_number
            collected = ""
    lone_backslash_ends_the_file = continuing and not text.endswith("\r\n")
    if collected or lone_backslash_ends_the_file:  # the latter is an entry with an empty key, in Java as here
        yield collected, first_number


def _natural_lines(text: str) -> list[str]:
    """Lines ended by ``\\n``, ``\\r`` or both; ``str.splitlines`` would also split at form feeds and more."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _entry(line: str, number: int, source: str) -> PropertyEntry:
    key_end = _key_end(line)
    rest = line[key_end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    where = f"{source} line {number}"
    dropped = "".join(char for char in _behind_backslashes(rest) if char not in _NEEDED and char not in _ESCAPES)
    return PropertyEntry(_unescaped(line[:key_end], where), _unescaped(rest, where), source, number, dropped)


def _behind_backslashes(text: str) -> Iterator[str]:
    position = 0
    while 0 <= (backslash := text.find("\\", position)) < len(text) - 1:
        yield text[backslash + 1]
        position = backslash + 2


def _key_end(line: str) -> int:
    escaped = False
    for position, char in enumerate(line):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in "=: \t\f":
            return position
    return len(line)


def _unescaped(text: str, where: str) -> str:
    if "\\" not in text:
        return text
    out = []
    position = 0
    while (backslash := text.find("\\", position)) >= 0:
        out.append(text[position:backslash])
        escape = text[backslash + 1 : backslash + 2]
        position = backslash + 2
        if escape == "u":
            digits = text[position : position + 4]
            if len(digits) < 4 or not _HEX_DIGITS.issuperset(digits):
                raise BadInput(f"{where}: \\u{digits} is not a character: \\u needs four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escape, escape))
    out.append(text[position:])
    return _with_pairs_joined("".join(out))


def _with_pairs_joined(text: str) -> str:
    """Java's characters are UTF-16 units: two escapes can make one character. A lone half stays what it is."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


_LONGEST_SHOWN = 60
_LARGEST_INT = 2**31 - 1


class PropertyReader:
    """Typed access. Like Kafka's ``ConfigDef`` it drops white space around every value."""

    def __init__(self, properties: JavaProperties) -> None:
        self.properties = properties

    def text(self, key: str) -> str | None:
        value = self.properties.get(key)
        return None if value is None else value.strip()

    def choice(self, key: str, allowed: Iterable[str], *, fold_case: bool = False) -> str | None:
        """The allowed value that is given, in the spelling of ``allowed``; ``None`` when the key is absent."""
        value = self.text(key)
        if value is None:
            return None
        choices = list(allowed)
        for choice in choices:
            if value == choice or (fold_case and value.lower() == choice.lower()):
                return choice
        raise self.refusal(key, f"allowed: {', '.join(choice or '(empty)' for choice in choices)}")

    def duration(self, key: str) -> timedelta | None:
        """A number of milliseconds as Java's ``int`` holds them."""
        value = self.text(key)
        if value is None:
            return None
        digits = value.removeprefix("+")
        if not (digits.isascii() and digits.isdigit() and int(digits) <= _LARGEST_INT):
            raise self.refusal(key, f"allowed: milliseconds, a whole number from 0 to {_LARGEST_INT}")
        return timedelta(milliseconds=int(digits))

    def refusal(self, key: str, why: str) -> BadInput:
        """The error to raise about a key that is there. A secret's value is not shown."""
        entry = self.properties.entry(key)
        value = shown(key, entry.value.strip())
        cut = value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + "…"
        named = key if value in ("", HIDDEN) else f"{key}={cut}"
        return BadInput(f"{entry.where}: {named}: {why}")
