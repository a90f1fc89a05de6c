"""The disks as families of the catalogue and as members of ``/v1/state``. Pure; what is not known is left out."""

import math
from collections.abc import Mapping, Sequence

from brimline.decide.disk_state import DiskState
from brimline.disks.sentences import would_do
from brimline.disks.task import DiskReport, VolumeStatus
from brimline.documents.codec import like
from brimline.documents.guard_state import FailureDocument, VolumeDocument
from brimline.metrics import catalogue
from brimline.metrics.metric import LabelValues, MetricFamily
from brimline.model import used_percent

Places = Sequence[tuple[str, VolumeStatus]]
"""Every log dir with its volume."""


def disk_families(report: DiskReport, seconds: float) -> list[MetricFamily]:
    places = _places(report)
    full = [volume.fullness is DiskState.FULL for _, volume in places]
    return [
        catalogue.DISK_FULL_LOG_DIRECTORY_COUNT.single(sum(full)),
        catalogue.LOG_DIRECTORY_DISK_FULL.family(
            tuple((path,) for path, _ in places), [int(is_full) for is_full in full]
        ),
        catalogue.LIMIT_USED_PERCENT.single(report.limits.max_used_percent),
        catalogue.LIMIT_FREE_BYTES.single(report.limits.min_free_bytes),
        *_volume_families(places),
        *check_ages(report, seconds),
    ]


def check_ages(report: DiskReport, seconds: float) -> list[MetricFamily]:
    answered = [(path, volume) for path, volume in _places(report) if volume.reading.answered is not None]
    ages = [seconds - (volume.reading.answered or seconds) for _, volume in answered]
    return [catalogue.VOLUME_CHECK_AGE.family(_rows(answered), ages)]


def volumes_document(
    report: DiskReport, mount_points: Mapping[str, str], *, enforced: bool
) -> tuple[VolumeDocument, ...]:
    return tuple(_volume(volume, mount_points, enforced=enforced) for volume in report.volumes)


def _places(report: DiskReport) -> Places:
    return [(path, volume) for volume in report.volumes for path in volume.log_dirs]


def _rows(places: Places) -> LabelValues:
    return tuple((path, volume.reading.device) for path, volume in places)


def _volume_families(places: Places) -> list[MetricFamily]:
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
        catalogue.VOLUME_RESERVE.family(rows, [volume.limits.reserve for _, volume, _, _ in known]),
        *_inode_families(places),
        catalogue.VOLUME_TO_LIMIT.family(rows, [_or_infinite(volume.bytes_to_limit) for _, volume, _, _ in known]),
        catalogue.VOLUME_SECONDS_TO_LIMIT.family(
            rows, [_or_infinite(volume.seconds_left) for _, volume, _, _ in known]
        ),
        catalogue.VOLUME_FILL_RATE.family(_rows(paced), [volume.fill_rate or 0.0 for _, volume in paced]),
        catalogue.VOLUME_CHECK_DURATION.family(_rows(timed), [volume.reading.took or 0.0 for _, volume in timed]),
        catalogue.VOLUME_STATE.family(
            tuple((path, volume.reading.device, state.value) for path, volume, state in states),
            [int(volume.state_of(path) is state) for path, volume, state in states],
        ),
    ]


def _inode_families(places: Places) -> list[MetricFamily]:
    counted = [(path, volume) for path, volume in places if volume.reading.total_files is not None]
    rows = _rows(counted)
    return [
        catalogue.VOLUME_INODES.family(rows, [volume.reading.total_files or 0 for _, volume in counted]),
        catalogue.VOLUME_INODES_USABLE.family(rows, [volume.reading.usable_files or 0 for _, volume in counted]),
        catalogue.VOLUME_INODES_LIMIT.family(rows, [volume.limits.min_free_files for _, volume in counted]),
    ]


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _volume(volume: VolumeStatus, mount_points: Mapping[str, str], *, enforced: bool) -> VolumeDocument:
    reading = volume.reading
    known = reading.total_bytes is not None and reading.usable_bytes is not None
    return like(
        VolumeDocument,
        reading,
        mount_point=mount_points.get(reading.device),
        state=volume.state.value,
        breaches=tuple(breach.value for breach in volume.breaches),
        reserve_bytes=volume.limits.reserve,
        fewest_files=volume.limits.min_free_files,
        offline=tuple(sorted(volume.offline)),
        used_percent=round(used_percent(reading.total_bytes or 0, reading.usable_bytes or 0), 3) if known else None,
        bytes_to_limit=volume.bytes_to_limit,
        fill_rate_bytes_per_second=None if volume.fill_rate is None else round(volume.fill_rate, 1),
        seconds_to_limit=None if volume.seconds_left is None else round(volume.seconds_left, 1),
        next_look_seconds=round(volume.next_look, 3),
        failure=FailureDocument.of(reading.failure),
        would_do=tuple(would_do(volume, enforced=enforced)),
    )
