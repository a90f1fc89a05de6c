"""The gateway as a process (``brimline gateway``): puts together what the ``gateway`` room has, from the broker's file.

Start: first the memory of refused sequences, the fences set by hand, the folders in the log dirs and one look at every
disk; only then the listeners. So the first request is already judged rightly. It needs neither the guard nor a broker
that answers.

The main thread is the forwarder, which alone touches connections. The disks, the folders and the control socket have
threads of their own, and only replace what the forwarder reads. Signals: SIGTERM and SIGINT drain and end it, SIGHUP
reads the file again.
"""

import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from types import FrameType
from typing import TextIO

from brimline.decide.disk_state import DiskState
from brimline.decide.interception import CLIENT_MARK, MARK
from brimline.disks.reserves import Reserves
from brimline.disks.sentences import log_dirs_online, reasons_of_full_log_dirs
from brimline.disks.task import DiskTask, VolumeStatus
from brimline.documents.journal import GATEWAY, Journal
from brimline.gateway.client import control_socket
from brimline.gateway.commands import GatewayCommands
from brimline.gateway.configured import (
    broker_access,
    disk_settings,
    forwarder_settings,
    make_state_dir,
    own_sockets,
    refuse_impossible,
    rule_settings,
    taking_aside,
    tls_of,
    upstream_of,
)
from brimline.gateway.control import ControlServer
from brimline.gateway.counters import Counters
from brimline.gateway.describe.child import DescribeWorker
from brimline.gateway.describe.rule import DescribeRule
from brimline.gateway.net.connection import OWN_FETCHES
from brimline.gateway.net.forwarder import Forwarder, OpenListener
from brimline.gateway.net.listening import passed_sockets
from brimline.gateway.net.loop import EventLoop
from brimline.gateway.net.source import source_for
from brimline.gateway.refusal_news import RefusalNews
from brimline.gateway.rules.commit_rule import CommitRule
from brimline.gateway.rules.fences import Fences
from brimline.gateway.rules.fetch_rule import NobodyJudges, fetch_rules
from brimline.gateway.rules.folder_looks import FolderLooks
from brimline.gateway.rules.follower_orders import FollowerSkips, OwnSkips
from brimline.gateway.rules.placement import PlacementWatch
from brimline.gateway.rules.rules import Rules
from brimline.gateway.rules.sequence_memory import SequenceMemory, SteadyTimeOfDay
from brimline.model import counted
from brimline.service import log_lines, signals
from brimline.service.clock import Clock, SystemClock
from brimline.service.log_lines import say
from brimline.service.worker import Worker, end_all
from brimline.settings import keys
from brimline.settings.config import GuardConfig
from brimline.settings.reload import Surroundings

_FOLDERS_INTERVAL = 1.0
_FOLDERS_INTERVAL_WHILE_FENCED = 0.2
_HOUSEKEEPING = 1.0
_RESERVE_INTERVAL = 0.5
_BURST_SHARE = 8
"""When this part of the way to a limit has passed by since the last look, it is time for another one."""
_SMALLEST_BURST = 1 << 20
_PATIENCE_AT_END = 2.0
_POLL = 0.01
_SWITCH_INTERVAL = 0.000_5
"""How long another thread may keep the forwarder waiting (Python's default is ten times as much)."""
_GC_THRESHOLDS = (50_000, 50, 100)
"""Connections leave no cycles behind; what little there is must not cost a round of the loop every 700 objects."""


def run_gateway(config: GuardConfig, log: TextIO, environment: Mapping[str, str], broker_cwd: str | None = None) -> int:
    """Until a signal ends it; returns that signal's number. ``BadInput`` when it cannot start."""
    surroundings = Surroundings(log=log, environment=environment, broker_cwd=broker_cwd)
    return Gateway(config, SystemClock(), surroundings).run()


class Gateway:
    _reached = (0, 0)
    """Connections that the broker turned away, and requests that got through, as of the last round."""
    _is_broker_gone = False

    def __init__(self, config: GuardConfig, clock: Clock, surroundings: Surroundings) -> None:
        refuse_impossible(config)
        self._config = config
        self._clock = clock
        self._surroundings = surroundings
        self._ended_by: int | None = None
        self._read_at = 0.0
        self._counters = Counters()
        self._loop = EventLoop(_say_bug)
        state_dir = config.state_dir
        self._warnings = make_state_dir(state_dir)
        self._time_of_day = SteadyTimeOfDay()
        self._memory = SequenceMemory(
            state_dir / f"sequences-{config.node_id}.map",
            now=self._time_of_day(),
            expiry_seconds=config.number(keys.REJECT_MEMORY) // 1000,
        )
        self._fences = Fences(
            state_dir=state_dir, node_id=config.node_id, log_dirs=config.broker.log_dirs, now=clock.now
        )
        self._skips = FollowerSkips()
        self._placement = PlacementWatch(config.broker.log_dirs)
        self._watch_log_dirs()
        self._describe_worker = DescribeWorker(broker_access(config))
        self._describe = DescribeRule(self._loop, self._describe_worker)
        self._commits = CommitRule(self._fences, lambda: self._placement.placement, lambda: self._reserves.offsets)
        self._commits.is_on = self._commits_line > 0
        self._rules = Rules(
            rule_settings(config),
            self._fences,
            lambda: self._placement.placement,
            self._memory,
            self._time_of_day,
            self._describe,
            self._commits,
            self._counters,
            self._folder_looks.when_fresh,
            enforces=config.is_enforcing,
        )
        self._forwarder = Forwarder(
            self._loop, forwarder_settings(config), self._rules, self._counters, self._look_at_disks
        )
        self._tls = tls_of(config)

    def _watch_log_dirs(self) -> None:
        log_dirs = self._config.broker.log_dirs
        self._folder_problems: dict[str, str | None] = {}
        self._listed: set[str] = set()
        # One for each log dir: a file system that hangs shall hold up nobody else.
        self._folder_workers = [Worker(f"folders of {path}", partial(self._look_at_folders, path)) for path in log_dirs]
        self._disk_worker = Worker("disks", self._step_disks)
        self._reserves = Reserves(self._config.state_dir, self._config.node_id, lambda: self._config.text(keys.RESERVE))
        self._reserves.refresh()
        self._reserve_worker = Worker("reserve", self._look_at_reserves)
        self._disks = DiskTask(
            log_dirs,
            disk_settings(self._config),
            self._clock,
            self._disk_worker.wake,
            self._say_disk_state,
            limits_of=lambda reading, limits: self._reserves.limits_of(reading, limits),
        )
        self._folder_looks = FolderLooks(self._loop, log_dirs)
        self._journal = Journal(self._config.state_dir, self._config.node_id, GATEWAY, self._clock.now)
        self._refusal_news = RefusalNews(enforces=self._config.is_enforcing)

    def run(self) -> int:
        self._surroundings.set_up_log(self._config)
        log_lines.listeners[:] = [self._journal.tell]
        threading.excepthook = log_lines.say_dead_task
        complaints = [tls.complaint for tls in self._tls.values() if tls.complaint is not None]
        for warning in (*self._config.warnings, *self._memory.warnings, *self._fences.warnings, *complaints):
            say(logging.WARNING, "config", warning)
        for warning in self._warnings:
            say(logging.ERROR, "no-state", warning)
        signals.listen(self._notice)
        _raise_descriptor_limit()
        self._first_look()
        self._forwarder.listen(list(self._listeners()))
        commands = GatewayCommands(
            self._config,
            self._clock,
            self._forwarder,
            self._rules,
            self._fences,
            self._memory,
            self._placement,
            self._describe_worker,
            self._skips,
            self._disks,
            self._look_at_disks,
        )
        control = self._control(commands)
        self._disk_worker.start()
        self._reserve_worker.start()
        self._journal.worker.start()
        self._loop.later(_HOUSEKEEPING, self._keep_house)
        self._say_started()
        sys.setswitchinterval(_SWITCH_INTERVAL)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        try:
            self._loop.run()
        finally:
            self._end(control)
        assert self._ended_by is not None
        return self._ended_by

    def _control(self, commands: GatewayCommands) -> ControlServer | None:
        """Clients are served without it, too: a state dir that is full or read-only must not cut them off."""
        path = control_socket(self._config)
        try:
            server = ControlServer(path, commands.by_name)
        except OSError as error:
            say(
                logging.ERROR,
                "no-control",
                f"no control socket {path} ({error.strerror}): clients are served, but the guard and brimline fence "
                "cannot reach this gateway; make the state dir writable and restart it",
            )
            return None
        server.start()
        return server

    @property
    def _workers(self) -> list[Worker]:
        return [self._disk_worker, self._reserve_worker, *self._folder_workers, self._journal.worker]

    def _first_look(self) -> None:
        """Every disk has answered, or is overdue, before a client is let in."""
        for worker in self._folder_workers:
            worker.start()
        self._disks.step()
        give_up_at = self._clock.seconds() + self._disks.settings.stall_timeout
        while not self._disks.has_answers() or (
            len(self._listed) < len(self._folder_workers) and self._clock.seconds() < give_up_at
        ):
            time.sleep(_POLL)
        self._step_disks()

    def _listeners(self) -> Iterator[OpenListener]:
        passed = passed_sockets(os.environ)
        for fronted in self._config.layout.fronted:
            sockets = (() if fronted.is_intercepted else tuple(passed.pop(fronted.name, ()))) or own_sockets(fronted)
            family, address = upstream_of(fronted)
            source = source_for(self._config.text(keys.GATEWAY_SOURCE), family, address[0])
            if source.complaint is not None:
                say(logging.WARNING, "config", f"{fronted.name}: {source.complaint}")
            tls = self._tls.get(fronted.name)
            may_skip = fronted.carries_replication and self._config.is_enforcing
            yield OpenListener(
                name=fronted.name,
                sockets=sockets,
                upstream_family=family,
                upstream=address,
                source=source.address,
                mark=MARK if fronted.is_intercepted else None,
                needs_login=fronted.client_protocol.uses_sasl,
                judge=fetch_rules(self._rules, self._skips, self._counters.fetches) if may_skip else None,
                client_tls=tls.client_context if tls and fronted.has_client_tls else None,
                broker_tls=tls.upstream_context if tls and fronted.has_broker_tls else None,
            )
        if self._config.skips_own_fetches:
            skips = OwnSkips(
                self._config.node_id,
                lambda: self._fences.snapshot.full_log_dirs,
                lambda: self._placement.placement,
            )
            yield OpenListener(
                name=OWN_FETCHES,
                sockets=taking_aside(),
                upstream_family=socket.AF_INET,
                upstream=("", 0),
                mark=CLIENT_MARK,
                judge=fetch_rules(NobodyJudges(), skips, self._counters.fetches),
            )
        for name in passed:
            say(
                logging.WARNING,
                "config",
                f"systemd passes a socket {name}, but no such listener goes through the gateway",
            )

    # Threads of their own ----------------------------------------------------------------------------------------

    def _step_disks(self) -> float:
        wait = self._disks.step()
        self._fences.set_full(reasons_of_full_log_dirs(self._disks.report))
        if self._commits.is_on:
            self._commits.past_line = self._disks.report.past_line(self._commits_line, self._commits.past_line)
        self._expect_bursts()
        return wait

    @property
    def _commits_line(self) -> int:
        return self._config.number(keys.COMMITS_LINE) if self._config.is_enforcing else 0

    def _expect_bursts(self) -> None:
        """A fast client fills a small volume between two looks; but the bytes pass by here first."""
        volumes = self._disks.report.volumes
        read_at = max((volume.reading.seconds for volume in volumes), default=0.0)
        if read_at == self._read_at:
            return  # nothing new is known, and what has passed by since the last look counts on
        self._read_at = read_at
        distances = [each.bytes_to_limit for each in volumes if each.bytes_to_limit and each.fullness is DiskState.OK]
        if distances:
            self._forwarder.burst_at = self._counters.bytes_to_broker + max(
                min(distances) // _BURST_SHARE, _SMALLEST_BURST
            )
        else:
            self._forwarder.burst_at = None

    def _look_at_reserves(self) -> float:
        if self._reserves.refresh():
            self._look_at_disks()
        return _RESERVE_INTERVAL

    def _look_at_folders(self, log_dir: str) -> float:
        self._folder_looks.begin(log_dir)
        self._placement.refresh(log_dir)
        self._folder_looks.end(log_dir)
        self._listed.add(log_dir)
        problem = self._placement.problems.get(log_dir)
        if problem is not None and problem != self._folder_problems.get(log_dir):
            say(logging.ERROR, "folders", problem, log_dir=log_dir)
        self._folder_problems[log_dir] = problem
        return _FOLDERS_INTERVAL if self._fences.snapshot.is_empty else _FOLDERS_INTERVAL_WHILE_FENCED

    def _say_disk_state(self, was: DiskState, volume: VolumeStatus) -> None:
        """One line when a log dir becomes full and one when it no longer is; the guard says the rest."""
        if DiskState.FULL not in (was, volume.state) or was is volume.state or volume.state is DiskState.OFFLINE:
            return
        verb = "refuses" if self._config.is_enforcing else "would refuse"
        log_dirs = log_dirs_online(volume)
        places = ", ".join(log_dirs)
        if volume.state is DiskState.FULL:
            for worker in self._folder_workers:
                worker.wake()
            count = sum(self._placement.placement.partitions_in(path) for path in log_dirs)
            say(
                logging.WARNING,
                "fenced",
                f"{places} is full: the gateway {verb} Produce for its {counted(count, 'partition')}",
                log_dirs=",".join(log_dirs),
                partitions=count,
            )
        else:
            say(
                logging.INFO,
                "released",
                f"{places} has room: Produce is accepted again",
                log_dirs=",".join(log_dirs),
            )

    # In the loop -------------------------------------------------------------------------------------------------

    def _keep_house(self) -> None:
        for tls in self._tls.values():
            renewal = tls.refresh()
            if renewal is not None:
                say(logging.INFO if renewal.is_loaded else logging.ERROR, "certificate", renewal.sentence)
        self._say_broker_state()
        self._memory.forget_expired(self._time_of_day())
        counters = self._counters
        count = counters.refused if self._config.is_enforcing else counters.would_refuse
        self._refusal_news.look(count, self._clock.seconds())
        for worker in self._workers:
            if not worker.is_alive:
                worker.start()
        for follower, skipped in self._skips.drop_expired().items():
            say(
                logging.WARNING,
                "skips-expired",
                f"no word from the guard that broker {follower} is still full: replication of its {skipped.count} "
                "skipped partitions resumed",
                follower=follower,
                partitions=skipped.count,
            )
        self._loop.later(_HOUSEKEEPING, self._keep_house)

    def _say_broker_state(self) -> None:
        """One line when the broker turns connections away, and one when requests get through to it again."""
        failed, passed = self._counters.closed["broker-unreachable"], self._counters.requests
        failed_before, passed_before = self._reached
        self._reached = (failed, passed)
        if failed > failed_before and not self._is_broker_gone:
            self._is_broker_gone = True
            places = ", ".join(str(each.upstream) for each in self._config.layout.fronted)
            say(
                logging.ERROR,
                "broker-gone",
                f"broker {self._config.node_id} accepts no connections ({places}): client connections are refused "
                "until it does",
            )
        elif self._is_broker_gone and failed == failed_before and passed > passed_before:
            self._is_broker_gone = False
            say(logging.INFO, "broker-back", f"broker {self._config.node_id} accepts connections again")

    def _look_at_disks(self) -> None:
        self._disks.look_now()
        self._disk_worker.wake()

    def _notice(self, number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_from_thread(self._reload if number == signal.SIGHUP else lambda: self._drain(number))

    def _drain(self, number: int) -> None:
        if self._ended_by is not None:  # asked twice: at once, then
            self._loop.stop()
            return
        self._ended_by = number
        left = counted(self._forwarder.all_open, "connection")
        say(logging.INFO, "stopping", f"{signal.Signals(number).name}: ending; {left} to end after open requests")
        self._forwarder.drain(self._config.seconds(keys.GATEWAY_DRAIN_TIMEOUT), self._loop.stop)

    def _reload(self) -> None:
        found = self._surroundings.reread(self._config)
        if found is None:
            return
        self._config, _ = found
        self._surroundings.set_up_log(self._config)
        self._rules.settings = rule_settings(self._config)
        self._commits.is_on = self._commits_line > 0
        self._forwarder.settings = forwarder_settings(self._config)
        self._disks.settings = disk_settings(self._config)
        self._look_at_disks()

    def _say_started(self) -> None:
        fronted = self._config.layout.fronted
        mode = "enforces" if self._config.is_enforcing else "observe mode: counts what it would refuse, refuses nothing"
        addresses = "; ".join(f"{each.name} {each.dialled} -> {each.upstream}" for each in fronted)
        say(
            logging.INFO,
            "started",
            f"in front of broker {self._config.node_id}: {addresses}; {mode}",
            broker=self._config.node_id,
            control=str(control_socket(self._config)),
        )

    def _end(self, control: ControlServer | None) -> None:
        if control is not None:
            control.close()
        self._forwarder.close()
        self._describe.close()
        end_all(self._workers, _PATIENCE_AT_END)
        self._memory.close()
        self._loop.close()


def _raise_descriptor_limit() -> None:
    """A connection takes two descriptors, and a large frame a pipe."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _say_bug(bug: BaseException) -> None:
    log_lines.LOGGER.error("a connection ended because of a bug", exc_info=bug, extra={"event": "bug"})
