"""The table of faults: what each does, what undoes it, and which invariants do not count for its target meanwhile."""

from collections.abc import Iterator

# Each of them puts its faults into the table, in this order.
from brimline.torture.faults import of_processes as of_processes  # isort: skip
from brimline.torture.faults import of_disks as of_disks  # isort: skip
from brimline.torture.faults import of_state as of_state  # isort: skip
from brimline.torture.faults import of_clusters as of_clusters  # isort: skip
from brimline.torture.faults.table import FAULTS as FAULTS

BY_NAME = {each.name: each for each in FAULTS}


def markdown_table() -> str:
    """The table as documentation. A test compares what the documentation says with this."""
    return "\n".join(_markdown_lines()) + "\n"


def _markdown_lines() -> Iterator[str]:
    yield "| fault | what it does | what undoes it | suspends | brokers |"
    yield "|---|---|---|---|---|"
    for each in FAULTS:
        suspended = ", ".join(f"`{name}`" for name in each.suspends) or "nothing"
        brokers = "any" if each.fewest_brokers == 1 else "several"
        yield f"| `{each.name}` | {each.does} | {each.undone_by} | {suspended} | {brokers} |"
