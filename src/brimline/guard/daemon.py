"""The guard as a process: starts the tasks in order, answers signals, ends in order.

Start: the configuration, then the first look at every disk, and only then the HTTP port; whoever gets an answer gets a
true one. The broker may come later, or never: the disks are watched all the same.

Every task has its own thread. One that dies of a bug is named in the log and in ``/healthz``, and is started again; the
others do not notice. Signals: SIGHUP reads the properties file again, SIGTERM and SIGINT end the guard.
"""

import logging
import signal
import threading
from collections.abc import Mapping
from types import FrameType
from typing import TextIO

from brimline.act.broker_setting import BrokerSetting
from brimline.act.move_pause import KEY as MOVE_THROTTLE
from brimline.act.move_pause import MovePause, PauseRecord
from brimline.decide.ballast import BallastRule
from brimline.decide.disk_state import DiskState
from brimline.disks.sentences import (
    enforcement_sentence,
    reasons_of_full_log_dirs,
    refusal,
    state_sentence,
)
from brimline.disks.task import DiskSettings, DiskTask, VolumeStatus
from brimline.gateway.client import GatewayClient, control_socket
from brimline.guard.ballast.feature import Ballasts
from brimline.guard.broker_client import BrokerClient
from brimline.guard.followers.feature import Followers
from brimline.guard.gateway_link.address_limits import address_task
from brimline.guard.gateway_link.task import GatewayNews, GatewayReport, GatewayTask
from brimline.guard.http import SMALL_PAGES, HttpServer, Pages
from brimline.guard.landing.feature import Landing
from brimline.guard.moves.task import MovePauseTask, MoveReport
from brimline.guard.moves.words import MoveNews
from brimline.guard.only_guard import OnlyGuard
from brimline.guard.percent.task import PercentReport, PercentTask
from brimline.guard.publish import Publisher
from brimline.guard.reclaim.feature import Reclaims
from brimline.guard.reclaim.settings import ReclaimSettings
from brimline.guard.reclaim.words import ceiling_sentence
from brimline.guard.scan_task import ScanReport, ScanTask
from brimline.guard.state_document import GuardState
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import BridgeState, BridgeStatus, JmxBridge
from brimline.model import BadInput, Bytes, Failure
from brimline.observe.scan.names import partitions_moving_into
from brimline.observe.scan.scanner import LogDirScanner
from brimline.observe.volumes import mount_points
from brimline.service import log_lines, signals
from brimline.service.clock import Clock
from brimline.service.durable_files import why_untrusted
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys
from brimline.settings.config import BadConfig, GuardConfig, load_config
from brimline.settings.reload import reloaded

_LOOK_AFTER_TASKS = 1.0
_PATIENCE_AT_END = 2.0
_SILENCE = 30.0
"""The disk task steps every second, whatever the disks do: a silence this long is a bug, not a disk."""
_LEVELS = {DiskState.OK: logging.INFO, DiskState.FULL: logging.WARNING, DiskState.UNKNOWN: logging.ERROR}


class Guard:
    def __init__(
        self,
        config: GuardConfig,
        clock: Clock,
        log: TextIO,
        environment: Mapping[str, str],
        broker_cwd: str | None = None,
    ) -> None:
        self._only = OnlyGuard(config.state_dir, config.node_id)
        self.config = config
        self._clock = clock
        self._log = log
        self._environment = environment
        self._broker_cwd = broker_cwd
        self._started_at = clock.now()
        self._attention = threading.Event()
        self._signals: list[int] = []
        self._broker_failure: Failure | None = None
        self._gateway_news = GatewayNews()
        self._board = MetricBoard()
        self._publisher = Publisher(self._board, clock)
        self._bridge = self._jmx_bridge()
        self._disk_worker = Worker("disks", self._step_disks)
        self._disks = DiskTask(
            config.broker.log_dirs, _disk_settings(config), clock, self._disk_worker.wake, self._say_disk_state
        )
        client = BrokerClient(config.admin, config.node_id, clock, self._may_read)
        remote = config.broker.remote_task_interval if config.broker.is_remote_storage_enabled else None
        self._percents = PercentTask(
            client, clock, config.broker.retention_check_interval, remote, self._publish_percentages
        )
        gateway_worker = Worker("gateway", self._step_gateway)
        self._gateway = GatewayTask(
            GatewayClient(control_socket(config)),
            clock,
            gateway_worker.wake,
            self._publish_gateway,
            is_wanted=self._is_enforced,
        )
        move_worker = Worker("moves", self._step_moves)
        self._move_pause = _move_pause(config, clock)
        self._move_news = MoveNews(
            config.node_id,
            config.admin_access.servers,
            self._move_pause.pause,
            is_enforced=self._is_enforced,
        )
        self._moves = MovePauseTask(
            self._move_pause,
            partitions_moving_into,
            clock,
            move_worker.wake,
            self._publish_moves,
            is_enforced=self._is_enforced,
        )
        self._scans: dict[str, ScanReport] = {}
        self._scan_lock = threading.Lock()
        self._workers = [self._disk_worker, gateway_worker, move_worker, Worker("percentages", self._percents.step)]
        if config.layout.fronted:
            self._workers.append(Worker("address limits", address_task(config).step))
        for path in config.broker.log_dirs:
            task = ScanTask(
                path, LogDirScanner(path).scan, clock, self._scan_interval, self._may_read, self._publish_scan
            )
            self._workers.append(Worker(f"scan of {path}", task.step))
        self._ballasts = Ballasts(config, clock, self._ballast_bytes, self._look_at_disks, self._publisher.ballasts)
        self._workers += self._ballasts.workers
        self._reclaims = Reclaims(
            config, clock, self._reclaim_settings, self._publisher.reclaims, self._publisher.reclaim_error
        )
        self._workers += self._reclaims.workers
        self._followers = Followers(lambda: self.config, clock, self._publisher)
        self._workers += self._followers.workers
        self._landing = Landing(
            lambda: self.config,
            clock,
            self._may_read,
            lambda: self._disks.report,
            lambda: self._percents.report,
            self._publisher.landing,
        )
        self._workers += self._landing.workers
        pages = Pages(self._board, self._state, self._refresh_ages, self._unhealthy, self._unready)
        self._http = HttpServer(
            config.text(keys.METRICS_HOST), config.number(keys.METRICS_PORT), pages.respond, SMALL_PAGES
        )

    def run(self) -> int:
        """Until a signal ends it; returns that signal's number."""
        log_lines.set_up(self._log, self.config.text(keys.LOG_FORMAT), self.config.text(keys.LOG_LEVEL))
        threading.excepthook = self._say_dead_task
        signals.listen(self._notice)
        for warning in (*self.config.warnings, *self._move_pause.warnings):
            say(logging.WARNING, "config", warning)
        for problem in (self._only.warning, why_untrusted(self.config.state_dir)):
            if problem is not None:
                say(logging.WARNING, "no-state", f"{keys.STATE_DIR.name}: {problem}")
        self._publisher.guard(self.config.node_id, self.config.text(keys.ENFORCEMENT), self._started_at.timestamp())
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
            f"watching {', '.join(self.config.broker.log_dirs)} of broker {self.config.node_id}; "
            f"http://{self.config.text(keys.METRICS_HOST)}:{port}/metrics; "
            f"{enforcement_sentence(enforced=self._is_enforced)}; {ceiling_sentence(self._reclaim_settings())}",
            broker=self.config.node_id,
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
            while self._signals:
                number = self._signals.pop(0)
                if number != signal.SIGHUP:
                    return number
                self.reload()
            for worker in self._workers:
                if not worker.is_alive:
                    self._publisher.error(f"{worker.name}-task-died")
                    worker.start()

    def _end(self, number: int) -> None:
        say(logging.INFO, "stopping", f"ending on {signal.Signals(number).name}")
        self._http.stop()
        for worker in self._workers:
            worker.end()
        give_up_at = self._clock.seconds() + _PATIENCE_AT_END
        for worker in self._workers:
            worker.join(max(give_up_at - self._clock.seconds(), 0.0))
        if self._bridge is not None:
            self._bridge.close()

    def reload(self) -> None:
        """SIGHUP: what can change without a restart does; everything else is named."""
        try:
            read = load_config(self.config.path, self._environment, self._broker_cwd)
        except BadConfig as bad:
            for problem in bad.problems:
                say(logging.ERROR, "reload-refused", f"nothing was changed: {problem}")
            self._publisher.reload("refused")
            return
        except BadInput as problem:
            say(logging.ERROR, "reload-refused", f"nothing was changed: {problem}")
            self._publisher.reload("refused")
            return
        self.config, changes = reloaded(self.config, read)
        for warning in self.config.warnings:
            say(logging.WARNING, "config", warning)
        for change in changes:
            level = logging.INFO if change.takes_effect else logging.WARNING
            say(level, "reloaded" if change.takes_effect else "needs-restart", str(change), key=change.key)
        self._publisher.reload("applied" if changes else "unchanged")
        if not changes:
            say(logging.INFO, "reloaded", "the properties file says what it said before")
            return
        log_lines.set_up(self._log, self.config.text(keys.LOG_FORMAT), self.config.text(keys.LOG_LEVEL))
        self._disks.settings = _disk_settings(self.config)
        self._disks.look_now()
        for worker in self._workers:
            worker.wake()
        self._publisher.percentages(self._percents.report, self.config.text(keys.PUBLISH))

    def _step_disks(self) -> float:
        wait = self._disks.step()
        self._gateway.decided(reasons_of_full_log_dirs(self._disks.report))
        self._moves.decided(self._disks.report)
        self._followers.decided(self._disks.report)
        self._ballasts.decided(self._disks.report)
        self._reclaims.decided(self._disks.report)
        self._publisher.disks(self._disks.report)
        return wait

    def _look_at_disks(self) -> None:
        self._disks.look_now()
        self._disk_worker.wake()

    def _ballast_bytes(self) -> Bytes:
        return Bytes(self.config.number(keys.BALLAST_BYTES))

    def _reclaim_settings(self) -> ReclaimSettings:
        return ReclaimSettings.of(self.config)

    def _step_gateway(self) -> float:
        return self._gateway.step()

    def _step_moves(self) -> float:
        return self._moves.step()

    def _publish_moves(self, report: MoveReport) -> None:
        self._publisher.moves(report)
        self._move_news.tell(report)

    def _publish_gateway(self, report: GatewayReport) -> None:
        self._publisher.gateway(report)
        self._gateway_news.tell(report)

    def _publish_percentages(self, report: PercentReport) -> None:
        self._publisher.percentages(report, self.config.text(keys.PUBLISH))
        failure = report.failure
        if failure != self._broker_failure:
            self._broker_failure = failure
            if failure is None:
                say(logging.INFO, "broker-answers", "the broker answers; retention percentages are computed")
            else:
                say(logging.WARNING, "broker-silent", f"no retention percentages: {failure}", kind=failure.kind.value)

    def _scan_interval(self) -> float:
        return self.config.seconds(keys.SCAN_INTERVAL)

    def _publish_scan(self, report: ScanReport) -> None:
        with self._scan_lock:
            self._scans = {**self._scans, report.scan.path: report}  # replaced, never changed: others read it
            self._publisher.scans(list(self._scans.values()))

    def _say_disk_state(self, was: DiskState, volume: VolumeStatus) -> None:
        say(
            _LEVELS[volume.state],
            f"disk-{volume.state.value}",
            state_sentence(volume, self._disks.settings.limits),
            was=was.value,
            device=volume.reading.device,
            log_dirs=",".join(volume.log_dirs),
            total_bytes=volume.reading.total_bytes,
            usable_bytes=volume.reading.usable_bytes,
        )
        if (act := refusal(volume, enforced=self._is_enforced)) is not None:
            say(logging.WARNING, "refuse" if self._is_enforced else "observe", act, device=volume.reading.device)
        if volume.reading.failure is not None:
            self._publisher.error(volume.reading.failure.kind.value)

    def _say_dead_task(self, dead: threading.ExceptHookArgs) -> None:
        name = dead.thread.name if dead.thread else "unknown"
        log_lines.LOGGER.error(
            "the task %s ended by a bug and is started again",
            name,
            exc_info=(dead.exc_type, dead.exc_value, dead.exc_traceback) if dead.exc_value else None,
            extra={"event": "task-died", "fields": {"task": name}},
        )

    def _notice(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        self._attention.set()

    def _may_read(self, log_dir: str) -> bool:
        """A log dir that cannot be watched may hang whoever lists it."""
        volumes = self._disks.report.volumes
        return any(log_dir in volume.log_dirs and volume.state is not DiskState.UNKNOWN for volume in volumes)

    def _refresh_ages(self) -> None:
        self._publisher.check_ages(self._disks.report)
        self._publisher.percentage_ages(self._percents.report)
        self._publisher.scan_ages(list(self._scans.values()))
        if self._landing.report is not None:
            self._publisher.landing_age(self._landing.report)
        if self._bridge is not None:
            self._board.put(*self._bridge.state.families())

    def _state(self) -> GuardState:
        return GuardState(
            now=self._clock.now(),
            seconds=self._clock.seconds(),
            started_at=self._started_at,
            config=self.config,
            disks=self._disks.report,
            percents=self._percents.report,
            mount_points=mount_points(),
            gateway=self._gateway.report,
            moves=self._moves.report,
            peers=self._followers.peers,
            orders=self._followers.orders,
            cordon=self._followers.cordon,
            ballasts=self._ballasts.statuses,
            reclaims=self._reclaims.reports,
            landing=self._landing.report,
            dead_tasks=[worker.name for worker in self._workers if not worker.is_alive],
        )

    @property
    def _is_enforced(self) -> bool:
        return self.config.text(keys.ENFORCEMENT) == keys.GATEWAY

    def _unhealthy(self) -> str | None:
        dead = [worker.name for worker in self._workers if not worker.is_alive]
        if dead:
            return f"tasks that died: {', '.join(dead)}"
        silent = self._clock.seconds() - self._disks.report.checked
        return f"the disks were last judged {silent:.0f} s ago" if silent > _SILENCE else None

    def _unready(self) -> str | None:
        """Not one disk can be watched: then the guard guards nothing."""
        volumes = self._disks.report.volumes
        if any(volume.state is not DiskState.UNKNOWN for volume in volumes):
            return None
        return "; ".join(str(volume.reading.failure) for volume in volumes)

    def _jmx_bridge(self) -> JmxBridge | None:
        if self.config.jmx is None:
            return None
        return JmxBridge.to_jvm(self.config.jmx, self._board.families, _say_bridge_state)


def _move_pause(config: GuardConfig, clock: Clock) -> MovePause:
    setting = BrokerSetting(config.admin, config.node_id, MOVE_THROTTLE)
    record = PauseRecord(config.state_dir / f"move-pause-{config.node_id}.json", MOVE_THROTTLE)
    return MovePause(setting, record, clock.now)


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
        reserve=ballast.release_below if ballast.size else Bytes(0),
    )
