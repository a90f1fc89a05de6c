"""The main job, on a real Kafka: what `make demo` shows. Every command printed behind a `$` is run as printed."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from brimline.sandbox import SandboxError, why_no_real_volumes
from scripts import demo_plain
from scripts.demo_fleet import fleet
from scripts.demo_full_disk import stock_kafka, with_brimline
from scripts.demo_look import look
from scripts.demo_steps import Unsettled, say


def main() -> int:
    try:
        if why_no_real_volumes():
            demo_plain.in_plain_folders()
        else:
            on_small_disks()
    except (SandboxError, Unsettled) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    say("The clusters are gone, and so is everything they made. Start your own with: .venv/bin/brimline sandbox up")
    return 0


def on_small_disks() -> None:
    look("disks of 64 MiB")
    stock_kafka()
    with TemporaryDirectory(prefix="brimline-demo-") as folder:
        with_brimline(Path(folder, "landing"))
        fleet(Path(folder, "landing"), Path(folder, "warehouse"), ceiling=30)


if __name__ == "__main__":
    sys.exit(main())
