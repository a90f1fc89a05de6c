"""How tests are dealt out to the processes of one run (pytest-xdist).

A file's tests stay together, because they share a cluster, and so do files that share one by
``tests/integration/shared.py``. All of Spark's go to one process, which starts one session for them. What starts a JVM
goes first: the many short tests fill the gaps at the end.
"""

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_ONE_SESSION = "tests/fleet/spark/"
_TOGETHER = {
    "two disks": (
        "gateway_full_disk",
        "gateway_full_disk_promises",
        "gateway_hostile",
        "history",
        "mixed_versions",
        "two_watchers",
    ),
    "three brokers": ("follower_reserve", "follower_shedding", "full_followers"),
    "ACLs": ("guard_permissions", "reclaim_doctor"),
    "two log dirs": ("reclaim_careful", "reclaim_guard"),
}
"""Of ``tests/integration``, by the cluster that they share: each has one and the same specification."""
_SCOPES = {f"tests/integration/test_{name}.py": scope for scope, names in _TOGETHER.items() for name in names}
_LONGEST_FIRST = (
    _ONE_SESSION,
    "tests/integration/test_fleet_end_to_end.py",
    "tests/integration/test_landing_guard.py",
    "tests/integration/test_reclaim_crashes.py",
    "tests/integration/test_remote_info.py",
    "tests/integration/test_gateway_full_disk.py",
    "tests/integration/test_full_followers.py",
    "tests/integration/test_guard_disks.py",
    "tests/integration/test_gateway_rollout.py",
)
"""Else one of them would run alone at the end, with the other cores idle."""
_MOST_PROCESSES = 6
"""Each may have a cluster of three brokers, which is a gigabyte."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist has no type marker
    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return _ONE_SESSION if path.startswith(_ONE_SESSION) else _SCOPES.get(path, path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    # Its own order is by the number of a file's tests, which puts the long ones last
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as there are cores: real clusters are waited for as much as they compute."""
    return min(2 * len(os.sched_getaffinity(0)), _MOST_PROCESSES)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest, then those that start a JVM, then the others; otherwise as they were."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    for place, path in enumerate(_LONGEST_FIRST):
        if item.nodeid.startswith(path):
            return place
    return len(_LONGEST_FIRST) + (item.get_closest_marker("integration") is None)
