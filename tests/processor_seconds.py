"""Processor seconds of each test file, with those of the processes that it started and waited for.

Minutes are those of one machine on one day; processor seconds can be compared, if nothing else keeps the machine busy:
ten waiting processes for each core doubled them. A cluster counts for the file that ends it. They are shown where
``--durations`` asks for times.
"""

import os
from collections import Counter
from collections.abc import Generator

import pytest

_BESIDES = "between tests"
_SECONDS = pytest.StashKey["Counter[str]"]()


def _used() -> float:
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SECONDS] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = _used()
    done = yield
    item.config.stash[_SECONDS][item.nodeid.partition("::")[0]] += _used() - before  # type: ignore[assignment]
    return done


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist hands its figures to the one that prints."""
    config = session.config
    seconds = config.stash[_SECONDS]
    hidden = hasattr(config, "workeroutput") or not config.getoption("numprocesses", None)
    if hidden:
        seconds[_BESIDES] += _used() - sum(seconds.values())  # type: ignore[assignment]
    if hasattr(config, "workeroutput"):
        config.workeroutput["processor seconds"] = dict(seconds)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """A process that was killed has handed over nothing."""
    found = getattr(node, "workeroutput", {})
    node.config.stash[_SECONDS].update(found.get("processor seconds", {}))  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shown, seconds = config.getoption("durations"), config.stash[_SECONDS]
    if shown is not None:
        terminalreporter.section(f"{sum(seconds.values()):.0f} processor seconds; the most by file")
        for name, value in seconds.most_common(shown or None):
            terminalreporter.write_line(f"{value:8.1f} {name}")
