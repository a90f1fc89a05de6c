"""Interception as the guard has it: what it needs from the disks and the cluster, and what is told of it."""

import logging
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from brimline.act.interception.link import HelperLink, Leaders, rules_of_others, why_not_here
from brimline.decide.disk_state import DiskState
from brimline.decide.interception import InterceptionSettings, Need, Phase, need_of
from brimline.disks.task import DiskReport, VolumeStatus, space_of
from brimline.documents.guard_state import InterceptionDocument
from brimline.documents.notices import Notice, Weight
from brimline.gateway.client import GatewayClient, control_socket
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.followers.client import ClusterClient
from brimline.guard.gateway_link.findings import gateway_finding, hole_weight
from brimline.guard.interception.task import InterceptionReport, InterceptionTask
from brimline.metrics import catalogue
from brimline.model import ObservationFailed, counted, human_bytes
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import GuardConfig

HELPER_SOCKET = Path("/run/brimline/interception.sock")
_GATEWAY_PATIENCE = 1.0
_LOOK_AT_PEERS = 30.0
_RETRY_PEERS = 5.0
_SHOWN = 3


def settings_of(config: GuardConfig) -> InterceptionSettings:
    return InterceptionSettings(
        arm_percent=config.number(keys.INTERCEPTION_PERCENT),
        arm_seconds=config.number(keys.INTERCEPTION_SECONDS),
        disarm_seconds=config.number(keys.INTERCEPTION_DISARM),
        drain_seconds=config.seconds(keys.GATEWAY_DRAIN_TIMEOUT),
        is_closed=config.text(keys.INTERCEPTION_FAILURE) == keys.CLOSED,
    )


def need_of_all(disks: DiskReport, settings: InterceptionSettings) -> Need:
    return max((_need(volume, settings) for volume in disks.volumes), default=Need.NONE)


def _need(volume: VolumeStatus, settings: InterceptionSettings) -> Need:
    if volume.fullness is DiskState.FULL:
        return Need.FULL
    space = space_of(volume.reading)
    return Need.NONE if space is None else need_of(space, volume.limits, volume.fill_rate, settings)


def free_where_full(disks: DiskReport) -> int | None:
    """Bytes that the fullest disk without room still has: what direct clients can write before its broker fails."""
    full = (each.reading.usable_bytes for each in disks.volumes if each.fullness is DiskState.FULL)
    return min((each for each in full if each is not None), default=None)


def interception_sentence(report: InterceptionReport, free: int | None, settings: InterceptionSettings) -> str:
    if report.failure is not None:
        return f"interception failed, clients connect to the broker directly: {report.failure}"
    if report.need and not report.gateway_answers:
        left = "" if free is None else f" with {human_bytes(free)} free"
        does = f"clients connect to the broker directly{left}"
        if report.phase.turns_aside:
            until = f"until it does{left}" if settings.is_closed else f"for {settings.grace:.0f} s, then {does}"
            does = f"new connections are refused {until}"
        if not report.knows_peers:
            return f"the broker has not named the other brokers: {does}; brimline doctor says whether it answers"
        return f"the gateway does not answer: {does}; start it (brimline gateway)"
    return {
        Phase.IDLE: "clients connect to the broker directly",
        Phase.ARMING: f"sending clients to the gateway{f': {report.direct} still direct' if report.direct else ''}",
        Phase.ARMED: f"clients go through the gateway: {counted(report.proxied, 'connection')}",
        Phase.DRAINING: f"sending clients back to the broker: {report.proxied} still on the gateway",
    }[report.phase]


def passing_notice(connections: int, ports: Sequence[int]) -> Notice:
    ask = " or ".join(f"dport = :{port}" for port in ports)
    return Notice(
        feature="interception",
        key="passing",
        weight=Weight.WARNING,
        word="PASSING",
        text=f"{counted(connections, 'connection')} of other programs on this machine set a mark of Brimline's "
        "(SO_MARK) and reach the broker past the gateway",
        cure=f"find them, and give them another mark: ss -tnpe '{ask}' | grep fwmark:0x62726d6",
        facts={"connections": connections},
    )


class InterceptionNews:
    """A line for every change, none in between."""

    def __init__(self) -> None:
        self._said: object = None

    def tell(self, report: InterceptionReport, sentence: str) -> None:
        is_lost = bool(report.need) and not report.gateway_answers
        news = (report.phase, report.failure, is_lost)
        is_first = self._said is None
        if news == self._said or (report.phase is Phase.ARMED and not is_lost and report.failure is None):
            return
        self._said = news
        if is_first and report.is_quiet:
            return
        level = logging.ERROR if report.failure is not None or is_lost else logging.WARNING
        say(logging.INFO if report.is_quiet else level, "interception", sentence, phase=report.phase.value)


class Interceptions(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        if not core.config.intercepts:
            return
        self._news = InterceptionNews()
        self._peers = ClusterClient(core.config.admin, core.broker, core.clock)
        self._leaders: Leaders = ()
        self._spared: Sequence[str] | None = None if _carries_peers(core.config) else ()
        self._ports = [each.upstream.port for each in core.config.layout.fronted]
        rules = HelperLink(core.broker, self._ports, HELPER_SOCKET)
        worker = Worker("interception", lambda: self._task.step(), at_end=rules.end)
        self._task = InterceptionTask(
            GatewayClient(control_socket(core.config), timeout=_GATEWAY_PATIENCE),
            rules,
            core.clock,
            lambda: settings_of(core.config),
            self._need_now,
            lambda: self._spared,
            self._changed,
            lambda: self._leaders,
        )
        self._need = Need.NONE
        self.workers = [worker]
        if self._spared is None or core.config.skips_own_fetches:
            self.workers.append(Worker("addresses of the other brokers", self._look_at_peers))

    def decided(self, disks: DiskReport) -> None:
        if self.workers:
            need = need_of_all(disks, settings_of(self.core.config))
            if need is not self._need:
                self.workers[0].wake()
            self._need = need

    def _need_now(self) -> Need:
        fenced = Need.FENCED if self.core.is_fenced else Need.NONE
        return max(fenced, need_of_all(self.core.disks, settings_of(self.core.config)))

    def _sentence(self, report: InterceptionReport) -> str:
        return interception_sentence(report, free_where_full(self.core.disks), settings_of(self.core.config))

    def document(self, seconds: float) -> Mapping[str, object]:
        if not self.workers:
            return {}
        report = self._task.report
        return {
            "interception": InterceptionDocument(
                phase=report.phase.value,
                does=self._sentence(report),
                direct=report.direct,
                proxied=report.proxied,
                failure=report.failure,
            )
        }

    def notices(self) -> Sequence[Notice]:
        passing = self._task.report.passing if self.workers else 0
        return [passing_notice(passing, self._ports)] if passing else []

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        config = looked.config
        if not config.intercepts:
            return
        if not config.is_enforcing:
            yield gateway_finding(
                Weight.NOTE, f"{keys.ENFORCEMENT.name}={keys.OBSERVE}: clients are intercepted, nothing is refused"
            )
        hindrance = why_not_here(HELPER_SOCKET)
        if hindrance is None:
            yield gateway_finding(Weight.FINE, "this machine can intercept clients")
        else:
            yield gateway_finding(hole_weight(config), f"clients cannot be intercepted: {hindrance}")
        if config.is_enforcing and config.why_no_own_skips is not None:
            yield gateway_finding(
                Weight.NOTE,
                f"this broker cannot skip fetches for a full disk: {config.why_no_own_skips}; leaders keep a reserve",
            )
        yield from _explain_rules_of_others(config)

    def _look_at_peers(self) -> float:
        try:
            found = {
                (str(info[4][0]).partition("%")[0], port)
                for host, port in self._peers.endpoints()
                for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            }
        except (ObservationFailed, OSError):
            return _RETRY_PEERS
        if _carries_peers(self.core.config):
            self._spared = tuple(sorted({address for address, _ in found}))
        if self.core.config.skips_own_fetches:
            self._leaders = tuple(sorted(found))
        return _LOOK_AT_PEERS

    def _changed(self, report: InterceptionReport) -> None:
        self.core.board.put(
            catalogue.INTERCEPTION.family(
                tuple((phase.value,) for phase in Phase), [int(phase is report.phase) for phase in Phase]
            ),
            catalogue.INTERCEPTION_FAILED.single(int(report.failure is not None)),
            catalogue.INTERCEPTION_ARMINGS.single(report.armings),
            catalogue.INTERCEPTION_CUT.single(report.cut),
        )
        self._news.tell(report, self._sentence(report))


def _explain_rules_of_others(config: GuardConfig) -> Iterator[Finding]:
    """Looked at, never touched."""
    ports = {each.upstream.port for each in config.layout.fronted}
    others = rules_of_others(ports)
    if others is None:
        yield gateway_finding(
            Weight.NOTE, "nftables rules of docker, firewalld and others were not checked: run doctor as root"
        )
        return
    for each in others[:_SHOWN]:
        yield gateway_finding(
            hole_weight(config),
            f"table {each.table}, chain {each.chain} redirects the broker's port ({each.text}): its clients are not "
            "intercepted. If the broker runs in a container, run Brimline there too",
        )
    if len(others) > _SHOWN:
        yield gateway_finding(hole_weight(config), f"{len(others) - _SHOWN} more such rules: nft list ruleset")


def _carries_peers(config: GuardConfig) -> bool:
    return any(each.name == config.broker.inter_broker_listener for each in config.layout.fronted)
