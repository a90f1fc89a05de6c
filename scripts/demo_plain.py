"""The demo where the kernel refuses small disks: plain folders, and limits just beside the disk's present use.

Nothing is ever filled here: the fence is a few dozen megabytes above what is used when it is set.
"""

import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from brimline.model import Bytes
from brimline.sandbox import Sandbox, SandboxSpec, VolumeSpec
from scripts import demo_ceiling, demo_fleet
from scripts.demo_fleet import fleet
from scripts.demo_full_disk import QUICK, count, create, fill, lower_retention, refusal
from scripts.demo_look import look
from scripts.demo_steps import Beside, Unsettled, beside_broker, is_fenced, producing, run, say, show, wait_for

_MIB = 1 << 20
_VOLUME = VolumeSpec(size=Bytes(1024 * _MIB))
"""How much room there must be: several times what is written, for others write here too."""
_FORGOTTEN_MEGABYTES = 80
_ROOM = 40 * _MIB
"""From the present use to the fence."""
_PER_CYCLE = 16 * _MIB
_RATE = 4000


def in_plain_folders() -> None:
    say(
        "Small disks of its own cannot be had here, so this runs in plain folders, with limits just beside the disk's "
        "present use; stock Kafka's death of a full disk, and a second disk that goes on meanwhile, cannot be shown so."
    )
    look("log dirs")
    with TemporaryDirectory(prefix="brimline-demo-") as folder:
        ceiling = _with_brimline(Path(folder, "landing"))
        fleet(Path(folder, "landing"), Path(folder, "warehouse"), ceiling)


def _with_brimline(landing: Path) -> int:
    """Returns the ceiling that was set."""
    say("Now a producer that does not stop, with Brimline: a gateway before the broker, a guard beside it.")
    brimline = {
        "disk.max.used.percent": "100",
        "disk.usage.check.interval.ms": "500",
        "brimline.enforcement": "gateway",
        "brimline.metrics.port": "0",
        "brimline.reclaim.max.bytes.per.cycle": str(_PER_CYCLE),
        **demo_ceiling.KEYS,
        **demo_fleet.keys(landing),
    }
    with Sandbox(SandboxSpec(volumes=(_VOLUME,), fronted=True, properties={**QUICK, **brimline})) as sandbox:
        (log_dir,) = sandbox.broker(1).log_dirs
        for topic in ("orders", "debug-logs"):
            create(sandbox, topic)
        fill(sandbox.admin_servers, "debug-logs", _FORGOTTEN_MEGABYTES)
        disk = shutil.disk_usage(log_dir)
        if disk.free < _VOLUME.size:
            raise Unsettled(
                f"{log_dir} is on a disk with {disk.free // _MIB} MiB free, and {_VOLUME.size // _MIB} are wanted"
            )
        fence = disk.free - _ROOM
        state_dir = sandbox.broker(1).node.home / "brimline"
        sandbox.broker(1).alter_properties({"disk.min.free.bytes": str(fence), "brimline.state.dir": str(state_dir)})
        show(
            f"'debug-logs' has {_FORGOTTEN_MEGABYTES} MB that nobody needs. {disk.free // _MIB:,} MiB are usable; "
            f"fewer than {fence // _MIB:,} MiB are to count as full (disk.min.free.bytes)."
        )
        with beside_broker("gateway", sandbox, 1), beside_broker("guard", sandbox, 1) as guard:
            _story(sandbox, guard, fence)
            # A ceiling is a whole percentage: the next one below. On a large disk others use more than that already.
            ceiling = int(100 * (disk.used - _FORGOTTEN_MEGABYTES * 500_000) / disk.total)
            show(
                f"A ceiling is a whole percentage of the disk; the next one below its present use is {ceiling} %. "
                f"A cycle may take {_PER_CYCLE // _MIB} MiB (brimline.reclaim.max.bytes.per.cycle)."
            )
            demo_ceiling.ceiling(
                sandbox,
                guard,
                "orders",
                percent=ceiling,
                fence=f"below {fence // _MIB:,} MiB usable",
                used=lambda: f"{shutil.disk_usage(log_dir).free // _MIB:,} MiB usable",
            )
    return ceiling


def _story(sandbox: Sandbox, guard: Beside, fence: int) -> None:
    servers = sandbox.bootstrap_servers
    (log_dir,) = sandbox.broker(1).log_dirs
    with producing(servers, "orders", _RATE) as busy:

        def watch() -> None:
            for _ in range(3):
                room = (shutil.disk_usage(log_dir).free - fence) / _MIB
                show(f"{room:+6.1f} MiB from the limit · 'orders' {busy.acknowledged():,} acknowledged")
                time.sleep(1)

        watch()
        wait_for(lambda: is_fenced(guard.address))
        say("The disk is over its limit. Produce to it is refused:")
        run("status", "--url", guard.address)
        stands_at = busy.acknowledged()
        show(f"a client that does not retry is told: {refusal(servers, 'orders')}")
        watch()
        show(f"reading goes on: {count(servers, 'orders'):,} records of 'orders' read")

        say("The cure is the one every operator knows: give 'debug-logs' less retention.")
        lower_retention(sandbox, "debug-logs")
        wait_for(lambda: not is_fenced(guard.address) and busy.acknowledged() > stands_at)
        say("Space came back, the fence lifted by itself, and so did the writing:")
        watch()
        acknowledged = busy.finish()
    stored = count(servers, "orders")
    show(f"'orders': {acknowledged:,} records acknowledged, {stored:,} in the log, each once, in order")
    if stored != acknowledged:
        raise RuntimeError("records of orders are missing")
