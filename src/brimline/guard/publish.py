"""What the tasks found, as metrics: the one place where reports become families of the catalogue.

``brimline.metrics.publish`` decides about KIP-1257's percentages only. With ``auto`` a broker that has these gauges
itself (4.3 and later) is not doubled: only what it shows wrongly is published, which is every tiered topic of unlimited
total retention, whose gauges stand still there. Until the broker has answered there is nothing to double.
"""

import math
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brimline import __version__
from brimline.decide.disk_state import DiskState
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.guard.ballast.task import BallastStatus
from brimline.guard.followers.cordon import CordonReport
from brimline.guard.followers.published import cordon_families, order_families, peer_families
from brimline.guard.followers.report import OrderReport, PeerReport
from brimline.guard.gateway_link.published import OF_A_GATEWAY_THAT_ANSWERS, gateway_families
from brimline.guard.gateway_link.task import GatewayReport
from brimline.guard.landing.task import LandingReport
from brimline.guard.moves.task import MoveReport
from brimline.guard.percent.percentages import Column, PlainFigures, TieredFigures
from brimline.guard.percent.task import PercentReport
from brimline.guard.reclaim.published import reclaim_ages, reclaim_families
from brimline.guard.reclaim.report import ReclaimReport
from brimline.guard.scan_task import ScanReport
from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.metric import LabelValues, Metric, MetricFamily
from brimline.model import Bytes, used_percent
from brimline.model.scan import FileKind, FolderKind, FolderState, LogDirScan
from brimline.service.clock import Clock

_PERCENTAGES = (
    catalogue.LOG_RETENTION_SIZE,
    catalogue.FUTURE_LOG_RETENTION_SIZE,
    catalogue.REMOTE_RETENTION_SIZE,
    catalogue.LOCAL_RETENTION_SIZE,
)


class Publisher:
    """Puts families on the board. Safe to use from any task's thread."""

    def __init__(self, board: MetricBoard, clock: Clock) -> None:
        self._board = board
        self._clock = clock
        self._lock = threading.Lock()
        self._errors: Counter[str] = Counter()
        self._reloads: Counter[str] = Counter()
        self._reclaim_errors: Counter[str] = Counter()

    def guard(self, broker: int, enforcement: str, started: float) -> None:
        info = catalogue.GUARD_INFO.family(((__version__, str(broker), enforcement),), (1,))
        self._board.put(info, catalogue.START_TIME.single(started))

    def disks(self, report: DiskReport) -> None:
        places = [(path, volume) for volume in report.volumes for path in volume.log_dirs]
        full = [volume.state is DiskState.FULL for _, volume in places]
        self._board.put(
            catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(sum(full)),
            catalogue.LOG_DIRECTORY_DISK_FULL.family(
                tuple((path,) for path, _ in places), [int(is_full) for is_full in full]
            ),
            catalogue.LIMIT_USED_PERCENT.single(report.limits.max_used_percent),
            catalogue.LIMIT_FREE_BYTES.single(report.limits.min_free_bytes),
            *_volume_families(places),
            *self._check_ages(places),
        )

    def check_ages(self, report: DiskReport) -> None:
        """Ages grow between checks, so they are worked out when somebody asks."""
        self._board.put(*self._check_ages([(path, volume) for volume in report.volumes for path in volume.log_dirs]))

    def percentages(self, report: PercentReport, publish: str) -> None:
        gone: list[Metric] = []
        families: list[MetricFamily] = [catalogue.BROKER_CONNECTED.single(int(report.failure is None))]
        for metric, column in _percentages(report, publish):
            if column is None:
                gone.append(metric)
            else:
                families.append(metric.family(column.rows, column.values))
        self._board.put(*families)
        if gone:
            self._board.remove(*(metric.name for metric in gone))
        if report.failure is not None:
            self.error(report.failure.kind.value)

    def percentage_ages(self, report: PercentReport) -> None:
        now = self._clock.seconds()
        ages = [
            (tier, now - figures.seconds)
            for tier, figures in (("log", report.plain), ("remote", report.tiered))
            if figures is not None
        ]
        self._board.put(catalogue.RETENTION_AGE.family(tuple((tier,) for tier, _ in ages), [age for _, age in ages]))

    def scans(self, reports: Sequence[ScanReport]) -> None:
        """What the last scans found; a log dir that could not be read has no figures."""
        read = [report for report in reports if report.scan.state is FolderState.READ]
        paths = tuple((report.scan.path,) for report in read)
        sizes = [(report.scan.path, kind, size) for report in read for kind, size in _bytes_by_kind(report.scan)]
        self._board.put(
            catalogue.LOG_DIR_BYTES.family(
                tuple((path, kind) for path, kind, _ in sizes), [size for _, _, size in sizes]
            ),
            catalogue.PARTITIONS.family(
                paths, [len(list(report.scan.folders.rows_of(FolderKind.CURRENT))) for report in read]
            ),
            catalogue.SCAN_DURATION.family(paths, [report.took for report in read]),
        )
        self.scan_ages(reports)

    def scan_ages(self, reports: Sequence[ScanReport]) -> None:
        now = self._clock.seconds()
        read = [report for report in reports if report.scan.state is FolderState.READ]
        self._board.put(
            catalogue.SCAN_AGE.family(
                tuple((report.scan.path,) for report in read), [now - report.seconds for report in read]
            )
        )

    def gateway(self, report: GatewayReport) -> None:
        """The figures of a gateway that does not answer are gone: 0 would say that it runs and does nothing."""
        if report.state is not None:
            self._board.put(catalogue.GATEWAY_UP.single(1), *gateway_families(report.state))
            return
        self._board.put(catalogue.GATEWAY_UP.single(0))
        self._board.remove(*(metric.name for metric in OF_A_GATEWAY_THAT_ANSWERS))

    def moves(self, report: MoveReport) -> None:
        rows = tuple((log_dir,) for log_dir in report.moves)
        counts = [len(found) for found in report.moves.values()]
        self._board.put(
            catalogue.MOVES_INTO_FULL.family(rows, counts),
            catalogue.MOVES_PAUSED.family(rows, counts if report.is_held else [0] * len(counts)),
        )

    def peers(self, report: PeerReport) -> None:
        self._board.put(*peer_families(report))

    def follower_orders(self, report: OrderReport) -> None:
        self._board.put(*order_families(report))

    def cordons(self, report: CordonReport) -> None:
        self._board.put(*cordon_families(report))

    def landing(self, report: LandingReport) -> None:
        outcomes = (("sent", report.sent), ("dropped", report.dropped), ("failed", report.failed))
        self._board.put(
            catalogue.LANDING_SNAPSHOTS.family(
                tuple((name,) for name, _ in outcomes), [count for _, count in outcomes]
            ),
            catalogue.LANDING_SPOOL_SNAPSHOTS.single(report.waiting),
            catalogue.LANDING_SPOOL_BYTES.single(report.waiting_bytes),
        )
        if report.bytes is not None and report.took is not None:
            self._board.put(
                catalogue.LANDING_SNAPSHOT_BYTES.single(report.bytes), catalogue.LANDING_DURATION.single(report.took)
            )
        self.landing_age(report)

    def landing_age(self, report: LandingReport) -> None:
        if report.landed is not None:
            self._board.put(catalogue.LANDING_AGE.single(self._clock.seconds() - report.landed))

    def ballasts(self, statuses: Sequence[BallastStatus], wanted: Bytes) -> None:
        rows = tuple((str(Path(status.path).parent), status.device) for status in statuses)
        self._board.put(
            catalogue.BALLAST_BYTES.family(rows, [status.size for status in statuses]),
            catalogue.BALLAST_WANTED.single(wanted),
            catalogue.BALLAST_RELEASES.family(rows, [status.releases for status in statuses]),
        )

    def reclaims(self, reports: Sequence[ReclaimReport]) -> None:
        self._board.put(*reclaim_families(reports), reclaim_ages(reports, self._clock.seconds()))

    def reclaim_ages(self, reports: Sequence[ReclaimReport]) -> None:
        self._board.put(reclaim_ages(reports, self._clock.seconds()))

    def reclaim_error(self, kind: str) -> None:
        with self._lock:
            self._reclaim_errors[kind] += 1
            self._board.put(_counted(catalogue.RECLAIM_ERRORS, self._reclaim_errors))

    def error(self, kind: str) -> None:
        with self._lock:
            self._errors[kind] += 1
            self._board.put(_counted(catalogue.ERRORS, self._errors))

    def reload(self, outcome: str) -> None:
        with self._lock:
            self._reloads[outcome] += 1
            self._board.put(_counted(catalogue.RELOADS, self._reloads))

    def _check_ages(self, places: Sequence[tuple[str, VolumeStatus]]) -> list[MetricFamily]:
        now = self._clock.seconds()
        answered = [(path, volume) for path, volume in places if volume.reading.answered is not None]
        return [
            catalogue.VOLUME_CHECK_AGE.family(
                _rows(answered), [now - (volume.reading.answered or now) for _, volume in answered]
            )
        ]


def _rows(places: Sequence[tuple[str, VolumeStatus]]) -> LabelValues:
    return tuple((path, volume.reading.device) for path, volume in places)


def _volume_families(places: Sequence[tuple[str, VolumeStatus]]) -> list[MetricFamily]:
    """Figures that a volume does not have are left out, not zero."""
    known = [
        (path, volume, volume.reading.total_bytes, volume.reading.usable_bytes)
        for path, volume in places
        if volume.reading.total_bytes is not None and volume.reading.usable_bytes is not None
    ]
    rows = tuple((path, volume.reading.device) for path, volume, _, _ in known)
    paced = [(path, volume) for path, volume, _, _ in known if volume.fill_rate is not None]
    timed = [(path, volume) for path, volume in places if volume.reading.took is not None]
    states = [(path, volume, state) for path, volume in places for state in DiskState]
    return [
        catalogue.VOLUME_TOTAL.family(rows, [total for _, _, total, _ in known]),
        catalogue.VOLUME_USABLE.family(rows, [usable for _, _, _, usable in known]),
        catalogue.VOLUME_USED_PERCENT.family(rows, [used_percent(total, usable) for _, _, total, usable in known]),
        catalogue.VOLUME_TO_LIMIT.family(rows, [_or_infinite(volume.bytes_to_limit) for _, volume, _, _ in known]),
        catalogue.VOLUME_SECONDS_TO_LIMIT.family(
            rows, [_or_infinite(volume.seconds_left) for _, volume, _, _ in known]
        ),
        catalogue.VOLUME_FILL_RATE.family(_rows(paced), [volume.fill_rate or 0.0 for _, volume in paced]),
        catalogue.VOLUME_CHECK_DURATION.family(_rows(timed), [volume.reading.took or 0.0 for _, volume in timed]),
        catalogue.VOLUME_STATE.family(
            tuple((path, volume.reading.device, state.value) for path, volume, state in states),
            [int(volume.state is state) for _, volume, state in states],
        ),
    ]


def _bytes_by_kind(scan: LogDirScan) -> list[tuple[str, int]]:
    """The disk's own bytes, each once: live partitions by kind of file, everything else by kind of folder."""
    live = (FolderKind.LOG_DIR, FolderKind.CURRENT)
    found = [(file.name, sum(scan.allocated_of(folder, file) for folder in live)) for file in FileKind]
    found += [(f"{folder.name}_folder", scan.allocated_of(folder)) for folder in FolderKind if folder not in live]
    return [(name.lower().replace("_", "-"), size) for name, size in found if size]


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _percentages(report: PercentReport, publish: str) -> list[tuple[Metric, Column | None]]:
    """Each of KIP-1257's metrics with the column to publish, or with ``None``."""
    if publish == "none" or report.publishes_percentages is None:
        return [(metric, None) for metric in _PERCENTAGES]
    only_what_stock_lacks = publish == "auto" and report.publishes_percentages
    plain: PlainFigures | None = None if only_what_stock_lacks else report.plain
    tiered: TieredFigures | None = report.tiered
    total = tiered.total if tiered else None
    local = tiered.local if tiered else None
    if only_what_stock_lacks and tiered and total and local:
        total, local = _without(total, tiered.stock_is_right), _without(local, tiered.stock_is_right)
    columns = (plain.current if plain else None, plain.future if plain else None, total, local)
    return list(zip(_PERCENTAGES, columns, strict=True))


def _without(column: Column, topics: frozenset[str]) -> Column:
    kept = np.array([topic not in topics for topic, _ in column.rows], dtype=np.bool_)
    rows = tuple(row for row, keep in zip(column.rows, kept.tolist(), strict=True) if keep)
    return Column(rows=rows, values=column.values[kept] if len(kept) else column.values)


def _counted(metric: Metric, counts: Counter[str]) -> MetricFamily:
    return metric.family(tuple((name,) for name in counts), list(counts.values()))
