"""Which log dirs of a broker share a volume, as far as the broker's own answer can tell.

A broker reports the volume's bytes with each of its log dirs and does not name the device, so two log dirs on one
volume look like two volumes. Adding them up would promise space that does not exist.

The rule: log dirs of one broker are taken to share a volume when they report the same total and the same usable
bytes, hold some replica bytes between them, and the volume is used enough to hold all of them. The last two keep
apart what only looks alike: fresh empty disks of one size, and mirrored disks with equal contents.
The guard, which can ask the file system, does not need this rule.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brimline.model.log_dirs import LogDirDescription
from brimline.model.quantities import Bytes, Percent, used_percent


@dataclass(frozen=True, kw_only=True, eq=False)
class Volume:
    """A volume with the log dirs on it. Sizes are ``None`` when the broker could not say."""

    log_dirs: tuple[LogDirDescription, ...]
    total_bytes: Bytes | None
    usable_bytes: Bytes | None

    @property
    def used_bytes(self) -> Bytes | None:
        if self.total_bytes is None or self.usable_bytes is None:
            return None
        return Bytes(self.total_bytes - self.usable_bytes)

    @property
    def used_percent(self) -> Percent | None:
        if self.total_bytes is None or self.usable_bytes is None:
            return None
        return used_percent(self.total_bytes, self.usable_bytes)

    @property
    def replica_bytes(self) -> Bytes:
        return Bytes(sum(log_dir.replica_bytes for log_dir in self.log_dirs))


def volumes_of(log_dirs: Iterable[LogDirDescription]) -> Sequence[Volume]:
    """The volumes under one broker's log dirs, in the order of their first log dir's path."""
    alike: dict[tuple[int, int], list[LogDirDescription]] = defaultdict(list)
    volumes = []
    for log_dir in log_dirs:
        if log_dir.total_bytes is None or log_dir.usable_bytes is None:
            volumes.append(Volume(log_dirs=(log_dir,), total_bytes=None, usable_bytes=None))
        else:
            alike[(log_dir.total_bytes, log_dir.usable_bytes)].append(log_dir)
    for (total, usable), group in alike.items():
        group.sort(key=lambda log_dir: log_dir.path)
        stored = sum(log_dir.replica_bytes for log_dir in group)
        together = [tuple(group)] if 0 < stored <= total - usable else [(log_dir,) for log_dir in group]
        volumes += [
            Volume(log_dirs=members, total_bytes=Bytes(total), usable_bytes=Bytes(usable)) for members in together
        ]
    return sorted(volumes, key=lambda volume: volume.log_dirs[0].path)
