"""Which of a broker's own log dirs are to be cordoned (Kafka 4.3: no new replica is put there).

**Invariant.** A log dir is cordoned while it is full, but never so that nobody in the cluster could take a new replica:
if no other broker is known to have room, one log dir of this broker stays open, the one with the most usable space. A
log dir that cannot be watched, or that the broker holds offline, stays as it is, since a release needs a reading. What
an operator has cordoned stays so, and is no place for a new replica either.

Two brokers that fill at the same moment may each rely on the other and both close everything. The next look at each
other shows it, and each opens one log dir again.
"""

from collections.abc import Collection
from dataclasses import dataclass

from brimline.decide.disk_state import DiskState
from brimline.model import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLogDir:
    path: str
    state: DiskState
    usable: Bytes | None


def log_dirs_to_cordon(
    log_dirs: Collection[OwnLogDir], *, ours: Collection[str], theirs: Collection[str], others_have_room: bool
) -> frozenset[str]:
    """``ours`` are cordoned by us already, ``theirs`` by an operator."""
    wanted = {each.path for each in log_dirs if each.state is DiskState.FULL and each.path not in theirs}
    wanted |= {
        each.path for each in log_dirs if each.state in (DiskState.UNKNOWN, DiskState.OFFLINE) and each.path in ours
    }
    is_open = any(
        each.state is DiskState.OK and each.path not in wanted and each.path not in theirs for each in log_dirs
    )
    online = [each for each in log_dirs if each.path in wanted and each.state is not DiskState.OFFLINE]
    if online and not is_open and not others_have_room:
        wanted.discard(max(online, key=lambda each: (each.usable or 0, each.path)).path)
    return frozenset(wanted)
