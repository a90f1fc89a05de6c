"""The pages of a fleet in a real browser: clicked through, by keyboard too, with hostile names, without a complaint."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from brimline.guard.http import HttpServer
from brimline.web.access import Access
from brimline.web.pages import WebPages
from brimline.web.warehouse import FleetSource
from tests.decide.reclaim.scenarios import all_scenarios
from tests.pages.test_html import HOSTILE
from tests.web.browser import NARROW, Visit, browsing, needs_browser
from tests.web.test_warehouse import forecast, newest, pressure, reading, replica, snapshot_of, write

pytestmark = needs_browser()

GIB = 1 << 30
TOKEN = "a-token-of-some-length"
NAMES = [name for name in HOSTILE if "\x00" not in name and name.isprintable()]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker whose disk a plan can be made for, and one whose names are hostile."""
    place = tmp_path_factory.mktemp("warehouse")
    scenario = next(each for each in all_scenarios() if each.name == "over-the-ceiling")
    device = scenario.tables.devices[0].name
    hostile = NAMES[0]
    write(
        place,
        "volume_pressure",
        pressure(1, f"/{device}", device),
        pressure(2, hostile, hostile, cluster_id=hostile, state="full", breaches=hostile),
    )
    write(place, "forecast", forecast(1, device, 3.0))
    write(place, "volumes", *(reading(1, device, hours, (40 + hours) * GIB) for hours in range(1, 9)))
    write(
        place,
        "retention_pressure",
        replica(1, f"/{device}", "orders", 5 * GIB),
        *({**replica(2, hostile, name, GIB), "cluster_id": hostile} for name in NAMES),
    )
    write(place, "newest", newest(snapshot_of(place, scenario)))
    return place


@pytest.fixture
def visit(browser: Browser, warehouse: Path) -> Iterator[Visit]:
    pages = WebPages(access=Access(None), fleet=FleetSource(str(warehouse)))
    server = HttpServer("127.0.0.1", 0, pages.respond)
    found = Visit(browser, f"http://127.0.0.1:{server.start()}")
    yield found
    found.close()
    server.stop()


def test_from_the_fleet_to_a_disk_and_its_slider(visit: Visit) -> None:
    page = visit.page
    visit.go("/")
    violations = {"/": visit.violations()}
    page.get_by_label("Broker").fill("1")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody a").click()
    expect(page.locator("#plan")).to_contain_text("Ceiling 75 %")
    slider = page.get_by_label("Move the ceiling")
    slider.focus()
    for _ in range(25):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#plan")).to_contain_text("Ceiling 50 %")
    expect(page.locator("#plan")).to_contain_text("WOULD DELETE")
    expect(page.get_by_role("status")).to_contain_text("Ceiling 50 %")
    expect(page.locator("#command")).to_contain_text("--ceiling 50 --log-dir")
    assert "ceiling=50" in page.url
    violations["/disk"] = visit.violations()
    page.goto(page.url)
    expect(page.locator("#plan")).to_contain_text("Ceiling 50 %")
    page.get_by_role("link", name="All disks").click()
    page.get_by_role("link", name="What if").click()
    page.get_by_label("Ceiling, %").fill("50")
    page.get_by_role("button", name="Show what would happen").click()
    expect(page.locator("#plan")).to_contain_text("1 broker, 1 volume")
    violations["/what-if"] = visit.violations()

    assert {path: found for path, found in violations.items() if found} == {}
    assert visit.complaints == []
    assert visit.strangers == []


def test_everything_is_reached_by_keyboard_and_nothing_is_cut_off(visit: Visit) -> None:
    visit.go("/")
    of_fleet = visit.reached_by_tab()
    visit.page.locator("tbody a").last.click()
    expect(visit.page.locator("#plan")).to_be_visible()
    of_disk = visit.reached_by_tab()
    visit.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})

    assert {"input:broker", "input:topic", "select:cluster", "button:Show"} <= set(of_fleet)
    assert of_fleet[0] == of_disk[0] == "a:Skip to the content"
    assert {"a:All disks", "input:range", "input:ceiling", "button:Copy"} <= set(of_disk)
    assert not visit.is_wider_than_the_window()


def test_hostile_names_are_text_in_a_real_browser(visit: Visit) -> None:
    visit.go("/")
    visit.page.locator("tbody a").first.click()
    expect(visit.page.locator("#plan")).to_be_visible()

    shown = visit.page.locator("td.path").all_inner_texts()
    assert {name.strip() for name in NAMES} <= {text.strip() for text in shown}
    assert visit.page.locator("main script, main img, main iframe").count() == 0
    assert visit.violations() == {}
    assert visit.complaints == []
    assert visit.strangers == []


def test_without_script_the_form_does_the_same(browser: Browser, warehouse: Path) -> None:
    pages = WebPages(access=Access(TOKEN), fleet=FleetSource(str(warehouse)))
    server = HttpServer("127.0.0.1", 0, pages.respond)
    credentials = {"username": "anybody", "password": TOKEN}
    visit = Visit(
        browser, f"http://127.0.0.1:{server.start()}", java_script_enabled=False, http_credentials=credentials
    )
    try:
        visit.go("/?broker=1")
        visit.page.locator("tbody a").click()
        expect(visit.page.get_by_label("Move the ceiling")).to_be_hidden()
        visit.page.get_by_label("Ceiling, % of the disk").fill("50")
        visit.page.get_by_role("button", name="Show what would be deleted").click()
        expect(visit.page.locator("#plan")).to_contain_text("Ceiling 50 %")
    finally:
        visit.close()
        server.stop()

    assert visit.complaints == []
