"""The guard's gateway: told which log dirs are full and what the broker decides by address; asked for its figures."""

from collections.abc import Iterator, Mapping

from brimline.disks.sentences import reasons_of_full_log_dirs
from brimline.disks.task import DiskReport
from brimline.documents.gateway_state import GatewayState
from brimline.gateway.client import GatewayClient, control_socket
from brimline.gateway.net.source import seen_address
from brimline.guard.feature import Core, Feature, Finding, Looked
from brimline.guard.gateway_link.address_limits import address_task, ask_rules
from brimline.guard.gateway_link.checks import check_gateway
from brimline.guard.gateway_link.findings import explain_addresses, explain_layout
from brimline.guard.gateway_link.published import OF_A_GATEWAY_THAT_ANSWERS, gateway_document, gateway_families
from brimline.guard.gateway_link.task import GatewayNews, GatewayReport, GatewayTask
from brimline.metrics import catalogue
from brimline.service.worker import Worker
from brimline.settings import keys


class GatewayLink(Feature):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._news = GatewayNews()
        worker = Worker("gateway", lambda: self._task.step())
        self._task = GatewayTask(
            GatewayClient(control_socket(core.config)),
            core.clock,
            worker.wake,
            self.changed,
            is_wanted=core.config.is_enforcing,
        )
        self.workers = [worker]
        if core.config.layout.fronted:
            self.workers.append(Worker("address limits", address_task(core.config).step))

    def decided(self, disks: DiskReport) -> None:
        self._task.decided(reasons_of_full_log_dirs(disks))

    def document(self, seconds: float) -> Mapping[str, object]:
        return {"gateway": gateway_document(self._task.report, self.core.config.path)}

    def changed(self, report: GatewayReport) -> None:
        """The figures of a gateway that does not answer are gone: 0 would say that it runs and does nothing."""
        board = self.core.board
        if report.state is not None:
            board.put(catalogue.GATEWAY_UP.single(1), *gateway_families(report.state))
        else:
            board.put(catalogue.GATEWAY_UP.single(0))
            board.remove(*(metric.name for metric in OF_A_GATEWAY_THAT_ANSWERS))
        self._news.tell(report)

    @classmethod
    def findings(cls, looked: Looked) -> Iterator[Finding]:
        config = looked.config

        def ask() -> GatewayState:
            with GatewayClient(control_socket(config)) as client:
                return client.state()

        yield from explain_layout(config)
        yield from check_gateway(config, ask)
        if config.layout.fronted:
            wish = config.text(keys.GATEWAY_SOURCE)
            seen = {seen_address(wish, fronted.upstream) for fronted in config.layout.fronted}
            asked = ask_rules(config) if looked.broker_answers else None
            yield from explain_addresses(config, asked, {address for address in seen if address is not None})
