"""The main job, on a real Kafka: what `make demo` shows. Every command printed behind a `$` is run as printed."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from brimline.sandbox import why_no_real_volumes
from scripts import demo_plain
from scripts.demo_fleet import fleet
from scripts.demo_full_disk import stock_kafka, with_brimline
from scripts.demo_look import look
from scripts.demo_steps import say


def main() -> int:
    return demo_plain.main() if why_no_real_volumes() else on_small_disks()


def on_small_disks() -> int:
    look("disks of 64 MiB")
    stock_kafka()
    with TemporaryDirectory(prefix="brimline-demo-") as folder:
        with_brimline(Path(folder, "landing"))
        fleet(Path(folder, "landing"), Path(folder, "warehouse"), ceiling=30)
    say("The clusters are gone, and so is everything they made. Start your own with: .venv/bin/brimline sandbox up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
