"""Which page is which: from a request to an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl

from brimline.documents.history import Timeline
from brimline.guard.http import SCRIPT_RESPONSE, HttpRequest, HttpResponse, disk_response, html_response
from brimline.model import BrimlineError, counted
from brimline.pages.disk_page import DiskQuery, DiskSeen
from brimline.pages.html import SCRIPT_PATH
from brimline.pages.parts import problem_page
from brimline.pages.volumes_page import ShownVolume, VolumeFilter, VolumesSeen, volumes_page
from brimline.web.access import Access
from brimline.web.guards import Ask, GuardAnswer, ask_guard, ask_guards, history_of, observing, rows_of

_MOST_FIELDS = 20
Query = Mapping[str, str]


class Fleet:
    """What is asked of a warehouse; ``warehouse.FleetSource`` reads a real one. Here: there is none."""

    def rows(self) -> Sequence[ShownVolume]:
        return ()

    def places_of(self, topic: str) -> set[tuple[str, int, str]]:
        return set()

    def disk(self, query: DiskQuery) -> DiskSeen:
        raise BrimlineError("no warehouse: start brimline web with --warehouse")

    def what_if(self, query: Query) -> bytes:
        raise BrimlineError("no warehouse: start brimline web with --warehouse")

    def close(self) -> None:
        """What is under way is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPages:
    """Guards are asked anew for every page; of a warehouse what is new."""

    access: Access
    guards: Sequence[str] = ()
    cluster: str = ""
    fleet: Fleet | None = None
    ask: Ask = ask_guard

    def respond(self, request: HttpRequest) -> HttpResponse:
        refused = self.access.refusal(request)
        if refused is not None:
            return refused
        fleet = self.fleet or Fleet()
        made: Mapping[str, Callable[[], HttpResponse]] = {
            "/": lambda: html_response(self._volumes(_fields(request), fleet)),
            "/disk": lambda: disk_response(request.query, fleet.disk),
            "/what-if": lambda: html_response(fleet.what_if(_fields(request))),
            SCRIPT_PATH: lambda: SCRIPT_RESPONSE,
        }
        make = made.get(request.path)
        if make is None:
            return html_response(problem_page("Page not found."), HTTPStatus.NOT_FOUND)
        try:
            return make()
        except BrimlineError as error:
            return html_response(problem_page(str(error)), HTTPStatus.SERVICE_UNAVAILABLE)
        except ValueError as error:
            return html_response(problem_page(f"Cannot show this: {error}."), HTTPStatus.BAD_REQUEST)

    def _volumes(self, query: Query, fleet: Fleet) -> bytes:
        wanted = VolumeFilter.of(query)
        answers = ask_guards(self.guards, self.ask) if self.guards else []
        of_guards, of_fleet = rows_of(answers, self.cluster), fleet.rows()
        seen = VolumesSeen(
            title=self.cluster or ("Cluster" if self.fleet is None else "Fleet"),
            about=self._about(answers),
            # Those of a fleet come in order
            rows=sorted([*of_guards, *of_fleet], key=lambda row: row.urgency) if of_guards else of_fleet,
            silent=[answer.problem for answer in answers if answer.state is None],
            is_fleet=self.fleet is not None,
            history=_history(answers),
        )
        return volumes_page(seen, wanted, fleet.places_of(wanted.topic) if wanted.topic else None)

    def _about(self, answers: Sequence[GuardAnswer]) -> str:
        asked = f"{counted(len(answers), 'guard')}, asked just now. " if answers else ""
        return (
            asked
            + observing(answers)
            + ("" if self.fleet is None else "From the warehouse, as of the last brimline fleet run.")
        )


def _fields(request: HttpRequest) -> Query:
    """Raises ``ValueError`` for too many."""
    return dict(parse_qsl(request.query, max_num_fields=_MOST_FIELDS))


def _history(answers: Sequence[GuardAnswer]) -> Timeline | None:
    return history_of(answers) if answers else None
