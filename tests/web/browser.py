"""A real browser at the pages: Debian's Chromium by Playwright, and axe-core over what it shows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = (1280, 800), (360, 740)
PATIENCE_MS = 120_000
expect.set_options(timeout=PATIENCE_MS)


def needs_browser() -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which("chromium") is None, reason="no browser here: Debian's package chromium is not installed"
    )


@contextmanager
def browsing() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One window. Whatever the console or a request complains about is kept in ``complaints``."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self.url = url.rstrip("/")
        self._context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, **context)
        self._context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self._heard(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {text}")

    def go(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    def close(self) -> None:
        self._context.close()

    @property
    def strangers(self) -> list[str]:
        """Requests to anybody but the server itself."""
        return [url for url in self.asked if not url.startswith((f"{self.url}/", "data:"))]

    def violations(self) -> dict[str, list[str]]:
        """Of axe-core's rules, in the light and in the dark, wide and narrow: the elements that break each."""
        found: dict[str, list[str]] = {}
        for scheme, (width, height) in (("light", WIDE), ("dark", WIDE), ("light", NARROW)):
            self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            self.page.set_viewport_size({"width": width, "height": height})
            # By the debugger: the page's own policy lets no other script in
            self.page.evaluate(AXE)
            result = self.page.evaluate("() => axe.run(document)")
            for each in result["violations"]:
                found[f"{scheme} {width}: {each['id']}"] = [node["html"][:200] for node in each["nodes"]]
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        return found

    def reached_by_tab(self, most: int = 200) -> list[str]:
        """What the keyboard reaches, in order, until it is back at the beginning."""
        # Else it goes on from where it was last. A reload in the middle of a navigation fails; going there does not
        self.page.wait_for_load_state()
        self.page.goto(self.page.url)
        reached: list[str] = []
        for _ in range(most):
            self.page.keyboard.press("Tab")
            name = self.page.evaluate(_ACTIVE)
            if name is None or (reached and name == reached[0]):
                break
            reached.append(name)
        return reached

    def is_wider_than_the_window(self) -> bool:
        wider: bool = self.page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return wider


_ACTIVE = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const name = at.name || at.getAttribute('aria-label') || at.textContent || at.type;
  return at.tagName.toLowerCase() + ':' + name.trim();
}"""
