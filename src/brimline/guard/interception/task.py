"""Carries out what ``decide.interception`` says: asks the gateway, counts connections, tells the helper.

**Invariant.** The rules last for some seconds (``ruleset``) and are renewed only after the gateway has answered. So no
client is turned aside to a gateway that is gone, whatever becomes of this guard. What the helper cannot do is told, and
tried again: at once after a failure, then every five seconds; until then clients go to the broker directly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from brimline.act.interception.link import Counted, Leaders
from brimline.act.interception.nftables import InterceptionFailed
from brimline.decide.interception import Interception, InterceptionSettings, Need, Phase, Seen, Turn, next_step
from brimline.model import ObservationFailed
from brimline.service.clock import Clock

CUT_AT_ONCE = 250
"""Connections that are ended in one step, so that thousands of clients do not come again in one instant."""
_ALL = 1_000_000
RETRY = 5.0
_WAITS = {Phase.IDLE: 0.5, Phase.ARMING: 0.1, Phase.ARMED: 0.5, Phase.DRAINING: 0.2}


class TurningGateway(Protocol):
    """``GatewayClient`` asks a real one."""

    def intercepted(self, *, let_go: bool = False, begins: bool = False) -> tuple[Mapping[int, int], int | None]: ...


class RuleHolder(Protocol):
    """``HelperLink`` has them in a real kernel."""

    def open(
        self, ports: Mapping[int, int], spared: Sequence[str], leaders: Leaders, for_fetches: int | None
    ) -> None: ...

    def say(self, *, armed: bool, held: bool, fetches: bool) -> None: ...

    def count(self) -> Counted: ...

    def cut(self, *, marked: bool, most: int) -> int: ...

    def disarm(self) -> None: ...

    def close(self) -> tuple[int, bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptionReport:
    """``failure``: why clients cannot be turned aside. ``armings`` and ``cut`` only grow.

    ``passing``: connections of others that bear a mark of ours.

    ``gateway_answers``: and it may be used: not before it is known whom to spare (``knows_peers``).
    """

    phase: Phase = Phase.IDLE
    need: Need = Need.NONE
    gateway_answers: bool = True
    knows_peers: bool = True
    direct: int = 0
    proxied: int = 0
    passing: int = 0
    armings: int = 0
    cut: int = 0
    failure: str | None = None

    @property
    def is_quiet(self) -> bool:
        return self.phase is Phase.IDLE and not self.need and self.failure is None


class InterceptionTask:
    """``need``, ``settings``, ``spared``, ``leaders`` are asked every step; ``spared``: ``None`` while unknown."""

    def __init__(
        self,
        gateway: TurningGateway,
        rules: RuleHolder,
        clock: Clock,
        settings: Callable[[], InterceptionSettings],
        need: Callable[[], Need],
        spared: Callable[[], Sequence[str] | None],
        changed: Callable[[InterceptionReport], None],
        leaders: Callable[[], Leaders] = lambda: (),
    ) -> None:
        self._gateway = gateway
        self._rules = rules
        self._clock = clock
        self._settings = settings
        self._need = need
        self._spared = spared
        self._changed = changed
        self._leaders = leaders
        self._state = Interception()
        self._ports: Mapping[int, int] = {}
        self._for_fetches: int | None = None
        self._is_swept = False
        self._passing = 0
        self.report = InterceptionReport()

    def step(self) -> float:
        """Do what is due; returns the seconds until more is."""
        try:
            if self._state.phase is Phase.IDLE and not self._is_swept:
                self._sweep()
            seen = self._looked()
            before, (self._state, acts) = self._state, next_step(self._state, seen, self._settings())
            if self._state.phase.turns_aside and not before.phase.turns_aside:
                self._tell_gateway(begins=True)
            cut = self._carry_out(acts)
            if self._state.phase is Phase.IDLE and before.phase is not Phase.IDLE:
                self._sweep()
        except InterceptionFailed as error:
            # The helper has gone, and its rules with it; or the kernel refused them.
            is_new = self.report.failure is None
            self._state, self._is_swept = Interception(), False
            self.report = replace(self.report, phase=Phase.IDLE, passing=0, failure=str(error))
            self._changed(self.report)
            return 0.0 if is_new else RETRY
        self._tell(before, seen, cut)
        is_news = self._state.phase is not before.phase
        return 0.0 if is_news and self._state.phase is Phase.ARMING else _WAITS[self._state.phase]

    def _sweep(self) -> None:
        """Also what an earlier guard or helper has left: whom it had turned aside is let go, unless there is a need."""
        left, is_used = self._rules.close()
        if left:
            self._state = Interception(phase=Phase.DRAINING, since=self._clock.seconds())
        self._is_swept = not is_used

    def _looked(self) -> Seen:
        need, is_idle = self._need(), self._state.phase is Phase.IDLE
        # Nothing is asked while nobody is turned aside and nothing is near.
        answers = True if is_idle and not need else self._gateway_answers()
        direct, marked, self._passing = Counted(0, 0) if is_idle else self._rules.count()
        return Seen(
            now=self._clock.seconds(),
            need=need,
            gateway_answers=answers,
            direct=direct,
            proxied=(marked + 1) // 2,
        )

    def _gateway_answers(self) -> bool:
        try:
            self._ports, self._for_fetches = self._gateway.intercepted()
        except ObservationFailed:
            return False
        return bool(self._ports) and self._spared() is not None

    def _carry_out(self, acts: Sequence[Turn]) -> int:
        """Returns how many connections were ended."""
        if Turn.ARM in acts or Turn.HOLD in acts:
            self._rules.open(self._ports, self._spared() or (), self._leaders(), self._for_fetches)
            self._rules.say(armed=Turn.ARM in acts, held=Turn.HOLD in acts, fetches=Turn.TURN_FETCHES in acts)
        if Turn.DISARM in acts:
            self._rules.disarm()
        if Turn.LET_GO in acts:
            self._tell_gateway(let_go=True)
        cut = 0
        if Turn.CUT_PROXIED in acts:
            cut += self._rules.cut(marked=True, most=_ALL)
        if Turn.CUT_DIRECT in acts:
            cut += self._rules.cut(marked=False, most=CUT_AT_ONCE)
        return cut

    def _tell_gateway(self, *, let_go: bool = False, begins: bool = False) -> None:
        try:
            self._gateway.intercepted(let_go=let_go, begins=begins)
        except ObservationFailed:
            return  # the next look finds out

    def _tell(self, before: Interception, seen: Seen, cut: int) -> None:
        is_arming = self._state.phase is Phase.ARMING and not before.phase.turns_aside
        self.report = InterceptionReport(
            phase=self._state.phase,
            need=seen.need,
            gateway_answers=seen.gateway_answers,
            knows_peers=self._spared() is not None,
            direct=seen.direct,
            proxied=seen.proxied,
            passing=self._passing,
            armings=self.report.armings + is_arming,
            cut=self.report.cut + cut,
        )
        self._changed(self.report)
