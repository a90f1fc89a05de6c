"""JMX object names in the very form in which Kafka writes them.

Kafka's KafkaMetricsGroup puts ``type`` and ``name`` first, then the tags, each value through Sanitizer.jmxSanitize:
word characters, ``-``, ``%``, ``.``, space and tab stay as they are, anything else has the whole value quoted by
ObjectName.quote. So topic names stand plain, and a log dir, which has a ``/``, always stands in quotes.
"""

import re
from dataclasses import dataclass

_PLAIN = re.compile(r"[\w\-%. \t]*", re.ASCII)
_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "*": r"\*", "?": r"\?", "\n": r"\n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bean:
    """The pattern of a gauge's object name; its one attribute is ``Value``."""

    domain: str
    type: str
    name: str
    keys: tuple[str, ...] = ()
    """The tags that tell the series apart."""
    fixed: tuple[tuple[str, str], ...] = ()
    """Tags with the same value in every series; after the others, where Kafka has ``is-future``."""

    def object_name(self, values: tuple[str, ...]) -> str:
        tags = (*zip(self.keys, values, strict=True), *self.fixed)
        properties = (("type", self.type), ("name", self.name), *tags)
        return f"{self.domain}:{','.join(f'{key}={jmx_sanitize(value)}' for key, value in properties)}"


def jmx_sanitize(value: str) -> str:
    """Kafka's Sanitizer.jmxSanitize."""
    return value if _PLAIN.fullmatch(value) else f'"{value.translate(_QUOTED)}"'
