"""Two depths of property testing, quick for every run and deep for `make test-long`; and no test on plain folders."""

from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from brimline.model import Bytes
from brimline.sandbox.namespace import FORCE_PLAIN, Namespace

pytest_plugins = ("tests.scheduling", "tests.processor_seconds")

MANY_EXAMPLES = 2_000
"""Of every property of every room: more would take longer than all other long tests."""

FEW = 40
"""Every run makes others."""

# A busy machine is slow to make examples, too.
settings.register_profile("quick", deadline=None, max_examples=FEW, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("quick"), max_examples=MANY_EXAMPLES)
settings.load_profile("quick")

_NEEDS_MOUNTS = "needs private mounts: "
_private_or_plain = Namespace.__init__


def _end_idle() -> None:
    # Not on top: most tests need no client library
    from tests.integration.shared import end_idle

    end_idle()


def _private_or_skipped(self: Namespace, size: Bytes) -> None:
    _end_idle()
    _private_or_plain(self, size)
    if self.refusal is not None:
        self.close()
        pytest.skip(f"{_NEEDS_MOUNTS}{self.refusal}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The skips above are one line of the summary, with their number, wherever the sandbox was to be made."""
    report = yield
    if isinstance(report.longrepr, tuple) and _NEEDS_MOUNTS in report.longrepr[2]:
        report.longrepr = (__file__, _private_or_skipped.__code__.co_firstlineno, report.longrepr[2])
    return report


@pytest.fixture(scope="session", autouse=True)
def _volumes_are_real() -> Iterator[None]:
    """Tests fill volumes and count their bytes. Where a sandbox has plain folders, that is a skip with the reason."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Namespace, "__init__", _private_or_skipped)
        yield
        _end_idle()


@pytest.fixture(scope="session")
def real_volumes(_volumes_are_real: None) -> None:
    """For a test whose sandbox is in a process of its own: the same skip."""
    Namespace(Bytes(0)).close()


@pytest.fixture
def plain_folders(_volumes_are_real: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the tests of sandboxes without private mounts, here and in processes of their own."""
    monkeypatch.setattr(Namespace, "__init__", _private_or_plain)
    monkeypatch.setenv(FORCE_PLAIN, "1")
