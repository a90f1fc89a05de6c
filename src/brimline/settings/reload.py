"""What a daemon was started with, and SIGHUP: the file read again, what takes effect at once, what needs a restart."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TextIO

from brimline.model import BadInput
from brimline.model.secrets import shown
from brimline.service import log_lines
from brimline.service.log_lines import say
from brimline.settings import keys
from brimline.settings.config import BadConfig, GuardConfig, Setting, load_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    key: str
    was: str
    now: str
    takes_effect: bool

    def __str__(self) -> str:
        rest = "" if self.takes_effect else " (takes effect after a restart)"
        return f"{self.key}: {self.was} -> {self.now}{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Of a guard or a gateway, besides its configuration."""

    log: TextIO
    environment: Mapping[str, str]
    broker_cwd: str | None = None

    def set_up_log(self, config: GuardConfig) -> None:
        log_lines.set_up(self.log, config.text(keys.LOG_FORMAT), config.text(keys.LOG_LEVEL))

    def reread(self, running: GuardConfig) -> tuple[GuardConfig, tuple[Change, ...]] | None:
        """What ``reloaded`` finds, all changes in the log; ``None`` for a file that cannot be used: nothing changes."""
        try:
            read = load_config(running.path, self.environment, self.broker_cwd)
        except BadInput as problem:
            for each in problem.problems if isinstance(problem, BadConfig) else (problem,):
                say(logging.ERROR, "reload-refused", f"nothing was changed: {each}")
            return None
        config, changes = reloaded(running, read)
        for change in changes:
            level = logging.INFO if change.takes_effect else logging.WARNING
            say(level, "reloaded" if change.takes_effect else "needs-restart", str(change), key=change.key)
        if not changes:
            say(logging.INFO, "reloaded", "the properties file is unchanged")
        return config, changes


def reloaded(running: GuardConfig, read: GuardConfig) -> tuple[GuardConfig, tuple[Change, ...]]:
    """The configuration to run by from now on, and every change with its fate."""
    settings: dict[str, Setting] = {}
    changes = []
    for name, was in running.settings.items():
        now = read.settings[name]
        takes_effect = was.key.reloadable
        if was.value != now.value:
            changes.append(_change(name, was.value, now.value, takes_effect=takes_effect))
        settings[name] = now if takes_effect else was
    changes += _changes_of_the_rest(running, read)
    return replace(running, settings=settings, warnings=read.warnings), tuple(changes)


def _changes_of_the_rest(running: GuardConfig, read: GuardConfig) -> list[Change]:
    """What belongs to the broker, and what holds secrets: the latter is named without its value."""
    changes = []
    for field in (
        "node_id",
        "log_dirs",
        "listeners",
        "retention_check_interval",
        "segment_delete_delay",
        "remote_task_interval",
    ):
        was, now = getattr(running.broker, field), getattr(read.broker, field)
        if was != now:
            changes.append(_change(field.replace("_", "."), was, now))
    if replace(running.admin, ssl_context=None) != replace(read.admin, ssl_context=None):
        changes.append(Change(key="brimline.admin.*", was="(secret)", now="(changed)", takes_effect=False))
    if running.jmx != read.jmx:
        changes.append(Change(key="brimline.jmx.*", was="(secret)", now="(changed)", takes_effect=False))
    return changes


def _change(key: str, was: object, now: object, *, takes_effect: bool = False) -> Change:
    was, now = (",".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in (was, now))
    return Change(key=key, was=shown(key, was), now=shown(key, now), takes_effect=takes_effect)
