"""Retention in percent, as the guard has it: one task, its figures and its lines in the log."""

import logging
from collections.abc import Mapping, Sequence

from brimline.guard.broker_client import BrokerClient
from brimline.guard.feature import Core, Feature
from brimline.guard.percent.published import percentage_ages, percentage_families, retention_document
from brimline.guard.percent.task import PercentReport, PercentTask
from brimline.metrics import catalogue
from brimline.metrics.metric import MetricFamily
from brimline.model import Failure
from brimline.service.log_lines import say
from brimline.service.worker import Worker
from brimline.settings import keys


class Percentages(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        broker = core.config.broker
        task = PercentTask(
            BrokerClient(core.config.admin, core.broker, core.clock, core.may_read),
            core.clock,
            broker.retention_check_interval,
            broker.remote_task_interval if broker.is_remote_storage_enabled else None,
            self.changed,
        )
        self._failure: Failure | None = None
        self.workers = [Worker("percentages", task.step)]

    def reloaded(self) -> None:
        self._publish()

    def current(self) -> Sequence[MetricFamily]:
        return percentage_ages(self.core.percents, self.core.clock.seconds())

    def document(self, seconds: float) -> Mapping[str, object]:
        return {"retention": retention_document(self.core.percents, seconds)}

    def changed(self, report: PercentReport) -> None:
        self.core.percents = report
        self._publish()
        failure = report.failure
        if failure != self._failure:
            self._failure = failure
            if failure is None:
                say(logging.INFO, "broker-answers", "the broker answers; retention percentages are computed")
            else:
                say(logging.WARNING, "broker-silent", f"no retention percentages: {failure}", kind=failure.kind.value)

    def _publish(self) -> None:
        report = self.core.percents
        families, gone = percentage_families(report, self.core.config.text(keys.PUBLISH))
        self.core.board.put(*families)
        if gone:
            self.core.board.remove(*gone)
        if report.failure is not None:
            self.core.count(catalogue.ERRORS, report.failure.kind.value)
