"""Two depths of property testing, quick for every run and deep for `make test-long`; and which tests stay together."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("long", max_examples=5000, deadline=None)
settings.register_profile("quick", deadline=None)
settings.load_profile("quick")

_ONE_SPARK = Path(__file__).parent / "fleet" / "spark"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests share a cluster, and all that need Spark share one session: none of them is started twice."""
    for item in items:
        together = _ONE_SPARK if item.path.is_relative_to(_ONE_SPARK) else item.path
        item.add_marker(pytest.mark.xdist_group(str(together)))
