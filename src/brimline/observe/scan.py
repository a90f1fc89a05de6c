"""The scan of a log dir: every file told apart, sized as Kafka and as the disk count, cheap when little changed.

What is remembered between scans is the file table (``scan_files``) and each folder's identity. A folder whose identity
is the same has the same names in it, so only its open files are asked about again. The rule that makes a scan with
memory equal to one without:

* a folder's identity is taken **before** it is listed, and trusted only if its times were settled by then: whatever
  happens to its names afterwards moves the change time;
* a file that is not open does not change while its name stands (``scan_files`` says why);
* a file with several names counts once; when a new one of those turns up, everything is read anew, since its other
  name may be in a folder that is remembered from when it was the only one;
* a broker that recovers after a crash may rebuild indexes in place: ``forget`` is for whoever saw it start, and
  ``forget_after`` bounds what nobody saw.

A live broker is the normal case: names go away under the look, and the log dir is listed again until none does, at most
a few times.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from brimline.model.scan import FolderState, LogDirScan
from brimline.observe.scan_batch import Folder
from brimline.observe.scan_files import empty_table
from brimline.observe.scan_folders import state_of
from brimline.observe.scan_look import LOG_DIR, NOTHING, look_at
from brimline.observe.scan_partition_metadata import read_topic_ids
from brimline.observe.scan_stat import StatBuffer
from brimline.observe.scan_tally import tally
from brimline.observe.scan_timestamps import read_timestamps

FORGET_AFTER = timedelta(hours=1)


class LogDirScanner:
    """One log dir and its memory. Used by one thread at a time."""

    def __init__(
        self, path: Path | str, *, clock_ns: Callable[[], int] = time.time_ns, forget_after: timedelta = FORGET_AFTER
    ) -> None:
        self.path = str(path)
        self._clock_ns = clock_ns
        self._forget_after_ns = int(forget_after.total_seconds() * 1_000_000_000)
        self._buffer = StatBuffer()
        self.forget()

    def forget(self) -> None:
        """The next scan reads everything."""
        self._memory = NOTHING
        self._begun_ns = self._clock_ns()

    def scan(self, *, timestamps: bool = False, topic_ids: bool = False) -> LogDirScan:
        """One look at names and sizes. What stands inside files costs more, and is read only when it is asked for:
        the newest timestamp of each segment, and the topic id of each replica (of those whose topic may have been cut
        out of the name it is always read). Either is remembered, and then in every later answer."""
        now_ns = self._clock_ns()
        if not 0 <= now_ns - self._begun_ns < self._forget_after_ns:
            self.forget()
        finished = False
        try:
            answer = self._scan(now_ns, timestamps=timestamps, topic_ids=topic_ids)
            finished = True
        finally:
            if not finished:
                self.forget()
        return answer

    def _scan(self, now_ns: int, *, timestamps: bool, topic_ids: bool) -> LogDirScan:
        try:
            root_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._nothing(now_ns, FolderState.ABSENT)
        except OSError as error:
            return self._nothing(now_ns, state_of(error))
        try:
            look = look_at(root_fd, self._memory, self._buffer, now_ns)
            if self._memory.folders and not look.memory.links <= self._memory.links:
                self.forget()
                look = look_at(root_fd, NOTHING, self._buffer, now_ns)
            folders = look.memory.folders
            read_topic_ids(root_fd, folders if topic_ids else (each for each in folders if each.what.topic_may_be_cut))
            if timestamps:
                read_timestamps(root_fd, look.memory.folders, look.memory.table)
        except OSError as error:
            return self._nothing(now_ns, state_of(error))
        finally:
            os.close(root_fd)
        self._memory = look.memory
        figures = tally(look.memory.folders, look.memory.table, look.passing)
        return LogDirScan(
            path=self.path,
            observed_at=_moment(now_ns),
            state=FolderState.READ,
            folders=figures.folders,
            segments=figures.segments,
            folders_read=look.folders_read,
            vanished=look.vanished,
        )

    def _nothing(self, now_ns: int, state: FolderState) -> LogDirScan:
        self.forget()
        figures = tally([Folder(name="", what=LOG_DIR, allocated=0, state=state)], empty_table(), empty_table())
        return LogDirScan(
            path=self.path,
            observed_at=_moment(now_ns),
            state=state,
            folders=figures.folders,
            segments=figures.segments,
            folders_read=0,
            vanished=0,
        )


def _moment(now_ns: int) -> datetime:
    return datetime.fromtimestamp(now_ns // 1_000_000_000, UTC) + timedelta(microseconds=now_ns % 1_000_000_000 // 1000)
