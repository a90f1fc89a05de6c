"""KIP-61: which segments go, so that a device is not used beyond its ceiling?

**Invariant.** For every device that is used beyond its ceiling the plan takes the globally oldest segments that may be
taken, and no more of them than it must:

- *Excess* is ``used - floor(total x percent / 100)``, used being what anyone uses, minus everything that is on its way
  out already: ``.deleted`` files, ``-delete`` folders, closed segments below their log's present start, and what
  ordinary retention removes at its next pass (``reclaim_going``). Guards that fill together see each other's trims
  there, so none frees what another has freed.
- *Age* is the largest record timestamp (``reclaim_kernel.ages`` has the rule for every odd value), made monotone along
  the log. So a log is only ever trimmed from its head.
- *Order* is by age, then topic name, partition and base offset (and, should two brokers share the device, the row), so
  that any two planners agree to the byte.
- The plan takes in this order, and stops as soon as what is taken reaches the excess: without the last one it would
  not. Bytes are allocated blocks, which is what comes back. The limit of a cycle is never passed: what does not fit
  into it ends the plan.
- Never taken: the active segment, what ends above the high watermark, what the brakes keep (``ReclaimPolicy``), any log
  that is not a current replica, is of a protected topic (``reclaim_topics``), or whose two views disagree.

Every segment gets one reason, the first of: its folder is no current replica; it is going; it is active; its log is
left out; it ends above the high watermark; it is younger than the minimum; it is within the minimum of bytes; it is
taken, or what kept it from being taken.
"""

import numpy as np

from brimline.decide.reclaim_device import each_device
from brimline.decide.reclaim_outcome import device_plan, nothing_taken, reasons, write_outcomes
from brimline.decide.reclaim_runs import runs_of
from brimline.decide.reclaim_taking import taking_from
from brimline.decide.reclaim_topics import TopicColumns
from brimline.model.reclaim import ReclaimTables
from brimline.model.reclaim_plan import ReclaimPlan


def plan(tables: ReclaimTables) -> ReclaimPlan:
    """``ValueError`` for tables that are out of order."""
    topics = TopicColumns(tables.topics)
    reason = np.empty(len(tables.segments), dtype=np.uint8)
    logs = nothing_taken(len(tables.logs))
    devices = []
    for columns in each_device(tables):
        runs = runs_of(columns, topics)
        taking = taking_from(runs)
        reason[columns.segment_rows] = reasons(runs, taking)
        write_outcomes(logs, runs, taking)
        devices.append(device_plan(runs, taking))
    return ReclaimPlan(reason=reason, logs=logs, devices=tuple(devices))
