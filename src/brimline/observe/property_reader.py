"""Properties read by type; a refusal names the key, the value, what is allowed, and where it was written."""

from collections.abc import Iterable
from datetime import timedelta

from brimline.model.failures import BadInput
from brimline.model.secrets import HIDDEN, shown
from brimline.observe.java_properties import JavaProperties

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
