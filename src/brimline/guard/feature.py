"""What a feature of the guard is: the few questions that the daemon, ``/metrics``, ``/v1/state`` and ``doctor`` ask.

To add one: a folder here with a subclass of ``Feature``, and its name in ``features.py``.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from brimline.decide.disk_state import DiskState
from brimline.disks.reserves import Reserves
from brimline.disks.task import DiskReport
from brimline.documents.notices import Notice, Weight
from brimline.guard.percent.task import PercentReport
from brimline.metrics.board import MetricBoard
from brimline.metrics.metric import Metric, MetricFamily
from brimline.model import BrokerId
from brimline.service.clock import Clock
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import GuardConfig


class Core:
    """What every feature is given: what holds now, and where to put what it finds. Safe to use from any thread.

    ``config``, ``disks`` and ``percents`` are replaced, never changed: whoever has one may keep it.
    """

    def __init__(
        self,
        config: GuardConfig,
        clock: Clock,
        board: MetricBoard,
        disks: DiskReport,
        look_at_disks: Callable[[], None] = lambda: None,
        reserves: Reserves | None = None,
        set_offline: Callable[[Collection[str]], None] = lambda _: None,
    ) -> None:
        """``look_at_disks`` has the disks read again; it returns at once. ``set_offline`` is told which log dirs the
        broker holds offline."""
        self.config = config
        self.clock = clock
        self.board = board
        self.disks = disks
        self.percents = PercentReport()
        self.is_fenced = False
        """Whether the gateway refuses something by hand or for a follower, by its last answer. A gateway that is lost
        does not change it."""
        self.look_at_disks = look_at_disks
        self.reserves = reserves or Reserves(config.state_dir, config.node_id, lambda: self.config.text(keys.RESERVE))
        self.set_offline = set_offline
        self.can_hold_cleaner = config.holds_cleaner
        """Whether its settings may be borrowed, as far as that is known."""
        self.is_cleaner_held = False
        """Whether some are: what the broker says of its cleaner is then what the guard has set."""
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}

    @property
    def broker(self) -> BrokerId:
        return self.config.node_id

    def may_read(self, log_dir: str) -> bool:
        """A log dir that cannot be watched may hang whoever lists it."""
        volumes = self.disks.volumes
        return any(log_dir in volume.log_dirs and volume.fullness is not DiskState.UNKNOWN for volume in volumes)

    def count(self, metric: Metric, kind: str) -> None:
        """One more of this kind, of a metric with one label."""
        with self._lock:
            counts = self._counts.setdefault(metric.name, Counter())
            counts[kind] += 1
            self.board.put(metric.family(tuple((name,) for name in counts), list(counts.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    topic: str
    """What it is about: one of ``TOPICS``."""
    weight: Weight
    sentence: str

    @classmethod
    def of(cls, notice: Notice, topic: str) -> "Finding":
        return cls(topic=topic, weight=notice.weight, sentence=notice.sentence)


TOPICS = (
    "configuration",
    "volumes",
    "limits",
    "permissions",
    "broker",
    "reclaim",
    "ballast",
    "gateway",
    "followers",
)
"""In the order in which ``doctor`` tells of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What ``doctor`` has seen before it asks the features."""

    config: GuardConfig
    clock: Clock
    disks: DiskReport
    broker_answers: bool

    @property
    def readable(self) -> list[str]:
        return [path for volume in self.disks.volumes if volume.reading.failure is None for path in volume.log_dirs]


class Feature:
    """What a feature does not need, it leaves as it is here."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.workers: Sequence[Worker] = ()

    @property
    def warnings(self) -> Sequence[str]:
        """Said once, at the start."""
        return ()

    def decided(self, disks: DiskReport) -> None:
        """The disks were judged. From the disks' thread; returns at once."""

    def reloaded(self) -> None:
        """``core.config`` has changed. The workers are woken afterwards."""

    def current(self) -> Sequence[MetricFamily]:
        """Metrics that change while nothing happens, such as ages: put on the board whenever somebody asks."""
        return ()

    def notices(self) -> Sequence[Notice]:
        """What holds now. Log, timeline, ``/v1/state``, ``status`` and page tell of them by themselves."""
        return ()

    def document(self, seconds: float) -> Mapping[str, object]:
        """Its members of ``/v1/state``, by the names in ``documents.guard_state``. ``seconds``: now, on the clock that
        never jumps.
        """
        return {}

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        """What it means on this broker, said by ``doctor`` before it is needed."""
        yield from ()
