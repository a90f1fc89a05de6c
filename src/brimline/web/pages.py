"""Which page is which: from a request to an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl

from brimline.documents.history import Timeline
from brimline.guard.http import HttpRequest, HttpResponse, html_response
from brimline.model import BrimlineError, counted
from brimline.pages.disk_page import HIGHEST_CEILING, LOWEST_CEILING, DiskSeen, disk_page
from brimline.pages.html import page, tag
from brimline.pages.volumes_page import ShownVolume, VolumeFilter, VolumesSeen, volumes_page
from brimline.web.access import Access
from brimline.web.guards import Ask, GuardAnswer, ask_guard, ask_guards, history_of, rows_of

_MOST_FIELDS = 20


class Fleet:
    """What is asked of a warehouse; ``warehouse.FleetSource`` reads a real one. Here: there is none."""

    def rows(self) -> Sequence[ShownVolume]:
        return ()

    def places_of(self, topic: str) -> set[tuple[str, int, str]]:
        return set()

    def disk(self, cluster: str, broker: int, device: str, ceiling: int | None) -> DiskSeen:
        raise BrimlineError("there is no warehouse here: start brimline web with --warehouse")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPages:
    """Guards are asked anew for every page; a warehouse is read at most every half minute."""

    access: Access
    guards: Sequence[str] = ()
    cluster: str = ""
    fleet: Fleet | None = None
    ask: Ask = ask_guard

    def respond(self, request: HttpRequest) -> HttpResponse:
        refused = self.access.refusal(request)
        if refused is not None:
            return refused
        made: Mapping[str, Callable[[Mapping[str, str]], bytes]] = {"/": self._volumes, "/disk": self._disk}
        make = made.get(request.path)
        if make is None:
            return html_response(_problem("There is no such page."), HTTPStatus.NOT_FOUND)
        try:
            return html_response(make(dict(parse_qsl(request.query, max_num_fields=_MOST_FIELDS))))
        except BrimlineError as error:
            return html_response(_problem(str(error)), HTTPStatus.SERVICE_UNAVAILABLE)
        except ValueError as error:
            return html_response(_problem(f"That cannot be shown: {error}."), HTTPStatus.BAD_REQUEST)

    def _volumes(self, query: Mapping[str, str]) -> bytes:
        wanted = VolumeFilter.of(query)
        answers = ask_guards(self.guards, self.ask) if self.guards else []
        fleet = self.fleet or Fleet()
        seen = VolumesSeen(
            title=self.cluster or ("Cluster" if self.fleet is None else "Fleet"),
            about=self._about(answers),
            rows=[*rows_of(answers, self.cluster), *fleet.rows()],
            remarks=[answer.problem for answer in answers if answer.state is None],
            has_topics=self.fleet is not None,
            history=_history(answers),
        )
        return volumes_page(seen, wanted, fleet.places_of(wanted.topic) if wanted.topic else None)

    def _about(self, answers: Sequence[GuardAnswer]) -> str:
        asked = f"{counted(len(answers), 'guard')}, asked just now. " if answers else ""
        return asked + ("" if self.fleet is None else "The warehouse, as the last run of brimline fleet left it.")

    def _disk(self, query: Mapping[str, str]) -> bytes:
        """Raises ``ValueError`` for a broker or a ceiling that is no number."""
        ceiling = int(query["ceiling"]) if query.get("ceiling") else None
        if ceiling is not None and not LOWEST_CEILING <= ceiling <= HIGHEST_CEILING:
            raise ValueError(f"a ceiling is from {LOWEST_CEILING} to {HIGHEST_CEILING}")
        fleet = self.fleet or Fleet()
        broker = int(query.get("broker", ""))
        return disk_page(fleet.disk(query.get("cluster", ""), broker, query.get("device", ""), ceiling))


def _history(answers: Sequence[GuardAnswer]) -> Timeline | None:
    return history_of(answers) if answers else None


def _problem(sentence: str) -> bytes:
    back = tag("p", tag("a", "All volumes", href="/"))
    return page("Brimline", tag("main", tag("h1", "Brimline"), tag("p", sentence), back, id="content"))
