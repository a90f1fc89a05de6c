"""A guard's ``/v1/state``, fetched and read into the shapes that a table needs."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brimline.cli.status.followers_shown import ShownCordon, ShownFollowers, shown_cordon, shown_followers
from brimline.cli.status.gateway_shown import ShownGateway, shown_gateway
from brimline.cli.status.reclaim_shown import ShownReclaim, shown_reclaim
from brimline.model.failures import BrimlineError

_FORMAT, _VERSION = "brimline.guard-state", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVolume:
    log_dirs: tuple[str, ...]
    device: str
    state: str
    breaches: tuple[str, ...]
    total_bytes: int | None
    usable_bytes: int | None
    used_percent: float | None
    fill_rate: float | None
    seconds_left: float | None
    failure: str | None
    would_do: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBroker:
    broker: int
    is_connected: bool
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPercent:
    topic: str
    partition: int
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRetention:
    """Percentages of one kind; ``highest`` has the fullest ones."""

    partitions: int
    over_100: int
    unknown: int
    highest: tuple[ShownPercent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMoves:
    """Moves into full log dirs, and what is done about them."""

    are_paused: bool
    sentence: str
    what_to_do: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBallast:
    """The ballast of one volume."""

    is_in_place: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownState:
    version: str
    enforcement: str
    broker: ShownBroker
    max_used_percent: int
    min_free_bytes: int
    volumes: tuple[ShownVolume, ...]
    moves: ShownMoves | None
    followers: ShownFollowers | None
    cordon: ShownCordon | None
    ballasts: tuple[ShownBallast, ...]
    reclaim: ShownReclaim | None
    gateway: ShownGateway | None
    plain: ShownRetention | None
    tiered: ShownRetention | None

    @property
    def is_healthy(self) -> bool:
        """Nothing here asks for anybody's attention."""
        return (
            self.broker.failure is None
            and all(volume.state == "ok" for volume in self.volumes)
            and (self.followers is None or not self.followers.full)
            and (self.reclaim is None or self.reclaim.is_healthy)
            and (self.gateway is None or self.gateway.lets_everything_through)
        )


def fetch_state(url: str, timeout: float) -> tuple[ShownState, str]:
    """The state, and the document it was read from."""
    address = url.rstrip("/") + "/v1/state"
    if not address.startswith(("http://", "https://")):
        raise BrimlineError(f"{url!r} is not the address of a guard: write http://host:port")
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:
            text: str = answer.read().decode("utf-8")
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "reason", failure)
        raise BrimlineError(f"no guard answers at {address}: {reason}") from failure
    return read_state(text, address), text


def read_state(text: str, address: str) -> ShownState:
    try:
        document: dict[str, Any] = json.loads(text)
        if document["format"] != _FORMAT:
            raise KeyError(document["format"])
        if document["version"] != _VERSION:
            raise BrimlineError(
                f"{address} answers in version {document['version']}, and this brimline reads version {_VERSION}: use "
                "the guard's own"
            )
        return _state(document)
    except (KeyError, TypeError, ValueError) as failure:
        raise BrimlineError(f"{address} answers, but not as a guard of this version does") from failure


def _state(document: Mapping[str, Any]) -> ShownState:
    broker, limits = document["broker"], document["limits"]
    return ShownState(
        version=document["guard"]["version"],
        enforcement=document["guard"]["enforcement"],
        broker=ShownBroker(broker=broker["id"], is_connected=broker["connected"], failure=_message(broker["failure"])),
        max_used_percent=limits["maxUsedPercent"],
        min_free_bytes=limits["minFreeBytes"],
        volumes=tuple(_volume(volume) for volume in document["volumes"]),
        moves=_moves(document.get("moves")),
        followers=shown_followers(document.get("followers")),
        cordon=shown_cordon(document.get("cordon")),
        ballasts=_ballasts(document.get("ballast")),
        reclaim=shown_reclaim(document.get("reclaim")),
        gateway=shown_gateway(document.get("gateway"), document["observedAt"]),
        plain=_retention(document["retention"]["plain"]),
        tiered=_retention(document["retention"]["tiered"]),
    )


def _volume(volume: Mapping[str, Any]) -> ShownVolume:
    return ShownVolume(
        log_dirs=tuple(volume["logDirs"]),
        device=volume["device"],
        state=volume["state"],
        breaches=tuple(volume["breaches"]),
        total_bytes=volume["totalBytes"],
        usable_bytes=volume["usableBytes"],
        used_percent=volume["usedPercent"],
        fill_rate=volume["fillRateBytesPerSecond"],
        seconds_left=volume["secondsToLimit"],
        failure=_message(volume["failure"]),
        would_do=tuple(volume["wouldDo"]),
    )


def _moves(moves: Mapping[str, Any] | None) -> ShownMoves | None:
    if moves is None:
        return None
    return ShownMoves(
        are_paused=moves["paused"],
        sentence=moves["does"],
        what_to_do=moves["whatToDo"],
    )


def _ballasts(ballast: Mapping[str, Any] | None) -> tuple[ShownBallast, ...]:
    if ballast is None:
        return ()
    return tuple(ShownBallast(is_in_place=each["inPlace"], sentence=each["does"]) for each in ballast["volumes"])


def _retention(retention: Mapping[str, Any] | None) -> ShownRetention | None:
    if retention is None:
        return None
    return ShownRetention(
        partitions=retention["partitions"],
        over_100=retention["over100"],
        unknown=len(retention["unknown"]),
        highest=tuple(ShownPercent(**highest) for highest in retention["highest"]),
    )


def _message(failure: Mapping[str, Any] | None) -> str | None:
    return None if failure is None else failure["message"]
