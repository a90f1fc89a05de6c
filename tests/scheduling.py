"""How tests are dealt out to the processes of one run (pytest-xdist).

A file's tests stay together, because they share a cluster, and all of Spark's go to one process, which starts one
session for them. What starts a JVM goes first: the many short tests fill the gaps at the end.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_ONE_SESSION = "tests/fleet/spark/"


class ByFile(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _ONE_SESSION if nodeid.startswith(_ONE_SESSION) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    # Its own order is by the number of a file's tests, which puts the long ones last
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's first, which are the longest in a row; then those that start Kafka; otherwise as they were."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if item.nodeid.startswith(_ONE_SESSION):
        return 0
    return 1 if item.get_closest_marker("integration") else 2
