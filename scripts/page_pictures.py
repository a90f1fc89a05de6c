"""The pictures of the pages in docs/: a real broker with a guard, a gateway and a full disk, and a made-up fleet.

``python -m scripts.page_pictures`` writes them anew. Needs Debian's chromium and pngquant, and takes a minute or two.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer
from playwright.sync_api import Browser

from bench.fleet_pages import made
from brimline.guard.http import HttpServer
from brimline.sandbox import Sandbox
from brimline.web.access import Access
from brimline.web.pages import WebPages
from brimline.web.warehouse import FleetSource
from tests.integration.full_disks import BY_PERCENT, MIB, create_topic_in, fill_beyond_limit, two_disks, write_ballast
from tests.integration.gatewayed import gateway, state_dir
from tests.integration.guarded import guard
from tests.integration.test_reclaim_guard import commit
from tests.waiting import eventually
from tests.web.browser import NARROW, WIDE, browsing

DOCS = Path(__file__).parent.parent / "docs" / "pictures"
MOST_BYTES = 60_000
_COLOURS = 32


class Camera:
    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    def take(self, name: str, url: str, size: tuple[int, int] = WIDE, scheme: str = "light", at: str = "") -> None:
        """``at``: what is scrolled to."""
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if scheme == "dark" else "light"
        )
        page = context.new_page()
        page.goto(url)
        if at:
            page.locator(at).first.evaluate("element => element.scrollIntoView()")
        shot = page.screenshot()
        context.close()
        command = ["pngquant", "--speed", "1", "--strip", str(_COLOURS), "-"]
        small = subprocess.run(command, input=shot, capture_output=True, check=True).stdout
        if len(small) > MOST_BYTES:
            raise RuntimeError(f"{name} has {len(small):,} bytes: show less of the page")
        (DOCS / f"{name}.png").write_bytes(small)
        print(f"{name}.png: {len(small):,} bytes", file=sys.stderr)


def broker_pictures(camera: Camera, folder: Path) -> None:
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(replace(two_disks("4.3.1"), short_paths=True)))
        full, other = sandbox.broker(1).log_dirs
        for topic, log_dir, megabytes in (("orders", full, 6), ("clicks", other, 24), ("audit", other, 9)):
            limits = {"segment.bytes": str(MIB), "retention.bytes": str(80 * MIB)}
            create_topic_in(sandbox, topic, log_dir, config=limits)
            write_ballast(sandbox, topic, megabytes)
        commit(sandbox, "billing", "clicks", 300)
        commit(sandbox, "reports", "audit", 890)
        settings = {
            **BY_PERCENT,
            "brimline.state.dir": str(state_dir(sandbox)),
            "brimline.enforcement": "gateway",
            "log.retention.disk.usage.percent": "60",
            "brimline.reclaim.mode": "plan",
            "brimline.reclaim.policy": "kip-61",
        }
        running = stack.enter_context(gateway(sandbox, folder / "gateway", BY_PERCENT))
        guarding = stack.enter_context(guard(sandbox, folder / "guard", settings))
        filler = fill_beyond_limit(sandbox, full)
        eventually(lambda: bool(running.fenced()))
        refused = Producer(
            {"bootstrap.servers": sandbox.bootstrap_servers, "client.id": "web-shop", "message.timeout.ms": 3000}
        )
        refused.produce("orders", b"x" * 1000, partition=0)
        refused.flush()
        eventually(lambda: "REFUSED" in guarding.get("/v1/history"))
        url = f"http://127.0.0.1:{guarding.port}"
        device = next(each["device"] for each in guarding.state()["volumes"] if str(other) in each["logDirs"])
        camera.take("guard", f"{url}/")
        camera.take("guard-narrow-dark", f"{url}/", NARROW, "dark")
        camera.take("disk", f"{url}/disk?device={device}&ceiling=20", (1280, 1340))
        sandbox.outside(filler).unlink()
        eventually(lambda: not running.fenced())
        eventually(lambda: "RELEASED" in guarding.get("/v1/history"))
        camera.take("timeline", f"{url}/", (1280, 560), at="h2:has-text('What happened')")


def fleet_picture(camera: Camera, folder: Path) -> None:
    pages = WebPages(access=Access(None), fleet=FleetSource(str(made(folder))))
    server = HttpServer("127.0.0.1", 0, pages.respond)
    try:
        camera.take("fleet", f"http://127.0.0.1:{server.start()}/")
    finally:
        server.stop()


def main() -> int:
    for program in ("chromium", "pngquant"):
        if shutil.which(program) is None:
            print(f"install Debian's package {program} first", file=sys.stderr)
            return 1
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        camera = Camera(browser)
        for part in (broker_pictures, fleet_picture):
            if sys.argv[1:] in ([], [part.__name__]):
                part(camera, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
