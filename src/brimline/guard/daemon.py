"""The guard as a process: starts the tasks in order, answers signals, ends in order.

Start: the configuration, then the first look at every disk, and only then the HTTP port; whoever gets an answer gets a
true one. The broker may come later, or never: the disks are watched all the same.

Every task has its own thread. One that dies of a bug is named in the log and in ``/healthz``, and is started again; the
others do not notice. Signals: SIGHUP reads the properties file again, SIGTERM and SIGINT end the guard.
"""

import logging
import signal
import threading
from collections import Counter
from collections.abc import Collection
from types import FrameType

from brimline import __version__
from brimline.decide.ballast import BallastRule
from brimline.decide.disk_state import DiskState
from brimline.disks.sentences import enforcement_sentence, refusal, state_sentence
from brimline.disks.task import DiskSettings, DiskTask, VolumeStatus
from brimline.documents.guard_state import GuardState
from brimline.documents.journal import GUARD, Journal
from brimline.documents.notices import Notice, NoticeLog
from brimline.guard.disk_pages import DiskPages
from brimline.guard.disks.published import check_ages, disk_families
from brimline.guard.feature import Core
from brimline.guard.features import FEATURES
from brimline.guard.history import KeptHistory
from brimline.guard.hosts import HostNames
from brimline.guard.http import SLOW_PAGES, SMALL_PAGES, HttpServer, Pages
from brimline.guard.only_guard import OnlyGuard
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.words import ceiling_sentence
from brimline.guard.state_document import guard_state
from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import BridgeState, BridgeStatus, JmxBridge
from brimline.model import Bytes
from brimline.observe.volumes import mount_points
from brimline.service import log_lines, signals
from brimline.service.clock import Clock
from brimline.service.durable_files import why_untrusted
from brimline.service.log_lines import say
from brimline.service.worker import Worker, end_all
from brimline.settings import keys
from brimline.settings.config import GuardConfig
from brimline.settings.reload import Surroundings

_LOOK_AFTER_TASKS = 1.0
_PATIENCE_AT_END = 2.0
_SILENCE = 30.0
"""The disk task steps every second, whatever the disks do: a silence this long is a bug, not a disk."""
_LEVELS = {
    DiskState.OK: logging.INFO,
    DiskState.FULL: logging.WARNING,
    DiskState.UNKNOWN: logging.ERROR,
}


class Guard:
    def __init__(self, config: GuardConfig, clock: Clock, surroundings: Surroundings) -> None:
        self._only = OnlyGuard(config.state_dir, config.node_id)
        self._clock = clock
        self._surroundings = surroundings
        self._started_at = clock.now()
        self._attention = threading.Event()
        self._signals: list[int] = []
        self._board = MetricBoard()
        disk_worker = Worker("disks", self._step_disks)
        self._disks = DiskTask(
            config.broker.log_dirs,
            _disk_settings(config),
            clock,
            disk_worker.wake,
            self._say_disk_state,
            limits_of=lambda reading, limits: self.core.reserves.limits_of(reading, limits),
        )

        def look_at_disks() -> None:
            self._disks.look_now()
            disk_worker.wake()

        def set_offline(log_dirs: Collection[str]) -> None:
            if set(log_dirs) != set(self._disks.offline):
                self._disks.offline = log_dirs
                disk_worker.wake()

        self.core = Core(config, clock, self._board, self._disks.report, look_at_disks, set_offline=set_offline)
        self.core.reserves.refresh()
        self._notice_log = NoticeLog(say)
        self._bridge = self._jmx_bridge()
        self._features = [feature(self.core) for feature in FEATURES]
        self._journal = Journal(config.state_dir, config.node_id, GUARD, clock.now)
        of_features = (worker for feature in self._features for worker in feature.workers)
        self._workers = [disk_worker, *of_features, self._journal.worker]
        history = KeptHistory(config.state_dir, config.node_id, clock.now)
        self._disk_pages = DiskPages(self.core, self._state, history)
        pages = Pages(
            self._board,
            self._state,
            self._refresh,
            self._unhealthy,
            self._unready,
            history,
            self._disk_pages.seen,
            HostNames(lambda: self.core.config).takes,
        )
        self._http = HttpServer(
            config.text(keys.METRICS_HOST), config.number(keys.METRICS_PORT), pages.respond, SMALL_PAGES, SLOW_PAGES
        )

    def run(self) -> int:
        """Until a signal ends it; returns that signal's number."""
        config = self.core.config
        self._surroundings.set_up_log(config)
        log_lines.listeners[:] = [self._journal.tell]
        threading.excepthook = log_lines.say_dead_task
        signals.listen(self._notice)
        for warning in (*config.warnings, *(each for feature in self._features for each in feature.warnings)):
            say(logging.WARNING, "config", warning)
        for problem in (self._only.warning, why_untrusted(config.state_dir)):
            if problem is not None:
                say(logging.WARNING, "no-state", f"{keys.STATE_DIR.name}: {problem}")
        info = catalogue.GUARD_INFO.family(((__version__, str(config.node_id), config.text(keys.ENFORCEMENT)),), (1,))
        self._board.put(info, catalogue.START_TIME.single(self._started_at.timestamp()))
        self._first_look()
        port = self._http.start()
        if self._bridge is not None:
            self._board.on_change = self._bridge.changed
            self._bridge.start()
        for worker in self._workers:
            worker.start()
        say(
            logging.INFO,
            "started",
            f"watching {', '.join(config.broker.log_dirs)} of broker {config.node_id}; "
            f"http://{config.text(keys.METRICS_HOST)}:{port}/metrics; "
            f"{enforcement_sentence(enforced=config.is_enforcing)}; {ceiling_sentence(ReclaimSettings.of(config))}",
            broker=config.node_id,
            port=port,
        )
        number = self._until_the_end()
        self._end(number)
        return number

    def _first_look(self) -> None:
        """Every disk answers, or is overdue, before anything is served."""
        self._disks.step()
        while not self._disks.has_answers() and set(self._signals) <= {signal.SIGHUP}:
            self._attention.wait(0.01)
            self._attention.clear()
        self._step_disks()

    def _until_the_end(self) -> int:
        while True:
            self._attention.wait(_LOOK_AFTER_TASKS)
            self._attention.clear()
            self._tell_notices()
            while self._signals:
                number = self._signals.pop(0)
                if number != signal.SIGHUP:
                    return number
                self.reload()
            for worker in self._workers:
                if not worker.is_alive:
                    self.core.count(catalogue.ERRORS, f"{worker.name}-task-died")
                    worker.start()

    def _end(self, number: int) -> None:
        say(logging.INFO, "stopping", f"ending on {signal.Signals(number).name}")
        self._http.stop()
        end_all(self._workers, _PATIENCE_AT_END)
        if self._bridge is not None:
            self._bridge.close()

    def reload(self) -> None:
        """SIGHUP: what can change without a restart does; everything else is named."""
        core = self.core
        found = self._surroundings.reread(core.config)
        if found is None:
            core.count(catalogue.RELOADS, "refused")
            return
        core.config, changes = found
        for warning in core.config.warnings:
            say(logging.WARNING, "config", warning)
        core.count(catalogue.RELOADS, "applied" if changes else "unchanged")
        if not changes:
            return
        self._surroundings.set_up_log(core.config)
        self._disks.settings = _disk_settings(core.config)
        self._disks.look_now()
        for feature in self._features:
            feature.reloaded()
        for worker in self._workers:
            worker.wake()

    def _step_disks(self) -> float:
        wait = self._disks.step()
        self.core.disks = self._disks.report
        for feature in self._features:
            feature.decided(self.core.disks)
        self._disk_pages.decided(self.core.disks)
        self._board.put(*disk_families(self.core.disks, self._clock.seconds()))
        return wait

    @property
    def _notices(self) -> list[Notice]:
        return [notice for feature in self._features for notice in feature.notices()]

    def _tell_notices(self) -> None:
        notices = self._notices
        self._notice_log.tell(notices)
        counts = Counter((each.feature, each.weight.value) for each in notices)
        self._board.put(catalogue.NOTICES.family(tuple(counts), list(counts.values())))

    def _say_disk_state(self, was: DiskState, volume: VolumeStatus) -> None:
        if volume.state is DiskState.OFFLINE:
            return  # its notice says it
        say(
            _LEVELS[volume.state],
            f"disk-{volume.state.value}",
            state_sentence(volume),
            was=was.value,
            device=volume.reading.device,
            log_dirs=",".join(volume.log_dirs),
            total_bytes=volume.reading.total_bytes,
            usable_bytes=volume.reading.usable_bytes,
        )
        enforced = self.core.config.is_enforcing
        if (act := refusal(volume, enforced=enforced)) is not None:
            say(logging.WARNING, "refuse" if enforced else "observe", act, device=volume.reading.device)
        if volume.reading.failure is not None:
            self.core.count(catalogue.ERRORS, volume.reading.failure.kind.value)

    def _notice(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        self._attention.set()

    def _refresh(self) -> None:
        """What grows between two looks is worked out when somebody asks."""
        families = [family for feature in self._features for family in feature.current()]
        self._board.put(*check_ages(self.core.disks, self._clock.seconds()), *families)
        if self._bridge is not None:
            self._board.put(*self._bridge.state.families())

    def _state(self) -> GuardState:
        core, seconds = self.core, self._clock.seconds()
        return guard_state(
            core.config,
            core.disks,
            core.percents,
            [*(feature.document(seconds) for feature in self._features), {"notices": tuple(self._notices)}],
            now=self._clock.now(),
            started_at=self._started_at,
            mount_points=mount_points(),
            dead_tasks=self._dead_tasks,
        )

    @property
    def _dead_tasks(self) -> list[str]:
        return [worker.name for worker in self._workers if not worker.is_alive]

    def _unhealthy(self) -> str | None:
        if dead := self._dead_tasks:
            return f"dead tasks: {', '.join(dead)}"
        silent = self._clock.seconds() - self.core.disks.checked
        return f"disks last checked {silent:.0f} s ago" if silent > _SILENCE else None

    def _unready(self) -> str | None:
        """Not one disk can be watched: then the guard guards nothing."""
        volumes = self.core.disks.volumes
        if any(volume.state is not DiskState.UNKNOWN for volume in volumes):
            return None
        return "; ".join(str(volume.reading.failure) for volume in volumes)

    def _jmx_bridge(self) -> JmxBridge | None:
        if self.core.config.jmx is None:
            return None
        return JmxBridge.to_jvm(self.core.config.jmx, self._board.families, _say_bridge_state)


def _say_bridge_state(state: BridgeState) -> None:
    level = logging.WARNING if state.status is BridgeStatus.WAITING or state.complaint else logging.INFO
    words = f": {state.complaint}" if state.complaint else ""
    say(level, "jmx", f"the JMX bridge is {state.status.value}{words}", beans=state.beans)


def _disk_settings(config: GuardConfig) -> DiskSettings:
    ballast = BallastRule(size=Bytes(config.number(keys.BALLAST_BYTES)), limits=config.limits)
    return DiskSettings(
        limits=config.limits,
        pace=config.pace,
        stall_timeout=config.seconds(keys.STALL_TIMEOUT),
        ballast_reserve=ballast.release_below if ballast.size else Bytes(0),
    )
