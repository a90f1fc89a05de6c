"""What the last scans found, as families of the catalogue. Pure. A log dir that could not be read has no figures."""

from collections.abc import Sequence

from brimline.guard.scans.task import ScanReport
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model.scan import FileKind, FolderKind, FolderState, LogDirScan


def scan_families(reports: Sequence[ScanReport], seconds: float) -> list[MetricFamily]:
    read = _read(reports)
    paths = tuple((report.scan.path,) for report in read)
    sizes = [(report.scan.path, kind, size) for report in read for kind, size in _bytes_by_kind(report.scan)]
    return [
        catalogue.LOG_DIR_BYTES.family(tuple((path, kind) for path, kind, _ in sizes), [size for _, _, size in sizes]),
        catalogue.PARTITIONS.family(
            paths, [len(list(report.scan.folders.rows_of(FolderKind.CURRENT))) for report in read]
        ),
        catalogue.SCAN_DURATION.family(paths, [report.took for report in read]),
        *scan_ages(reports, seconds),
    ]


def scan_ages(reports: Sequence[ScanReport], seconds: float) -> list[MetricFamily]:
    read = _read(reports)
    paths = tuple((report.scan.path,) for report in read)
    return [catalogue.SCAN_AGE.family(paths, [seconds - report.seconds for report in read])]


def _read(reports: Sequence[ScanReport]) -> list[ScanReport]:
    return [report for report in reports if report.scan.state is FolderState.READ]


def _bytes_by_kind(scan: LogDirScan) -> list[tuple[str, int]]:
    """The disk's own bytes, each once: live partitions by kind of file, everything else by kind of folder."""
    live = (FolderKind.LOG_DIR, FolderKind.CURRENT)
    found = [(file.name, sum(scan.allocated_of(folder, file) for folder in live)) for file in FileKind]
    found += [(f"{folder.name}_folder", scan.allocated_of(folder)) for folder in FolderKind if folder not in live]
    return [(name.lower().replace("_", "-"), size) for name, size in found if size]
