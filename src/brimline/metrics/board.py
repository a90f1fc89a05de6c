"""The newest family of every metric: tasks put, renderings look. Nobody waits for anybody."""

import threading
from collections.abc import Callable

from brimline.metrics.catalogue import BY_NAME
from brimline.metrics.metric import MetricFamily


class MetricBoard:
    """Safe to use from any thread. A family replaces the one of the same name, all of its series at once."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        """``on_change`` is called after every change and must return at once."""
        self._lock = threading.Lock()
        self._families: dict[str, MetricFamily] = {}
        self.on_change = on_change

    def put(self, *families: MetricFamily) -> None:
        """Those given together are seen together."""
        for family in families:
            if family.name not in BY_NAME:
                raise KeyError(f"{family.name} is not in the catalogue of metrics")
        with self._lock:
            self._families.update({family.name: family for family in families})
        self.on_change()

    def remove(self, *names: str) -> None:
        """A metric that does not apply any more is gone, which is not the same as 0."""
        with self._lock:
            for name in names:
                self._families.pop(name, None)
        self.on_change()

    def families(self) -> tuple[MetricFamily, ...]:
        """In the catalogue's order."""
        with self._lock:
            return tuple(self._families[name] for name in BY_NAME if name in self._families)
