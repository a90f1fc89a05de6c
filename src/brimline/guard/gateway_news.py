"""The gateway in the guard's log: one line when it begins to answer, one when it stops, none in between."""

import logging

from brimline.guard.gateway_task import GatewayReport
from brimline.guard.log_lines import say


class GatewayNews:
    def __init__(self) -> None:
        self._said: str | None = None

    def tell(self, report: GatewayReport) -> None:
        news = "it answers" if report.state is not None else str(report.failure)
        if news == self._said:
            return
        self._said = news
        if report.state is not None:
            say(
                logging.INFO,
                "gateway-answers",
                f"the gateway answers; its enforcement is {report.state.enforcement}",
                pid=report.state.pid,
            )
        elif report.failure is not None:
            # Where none is wanted and none was ever set up, that is how it should be
            level = logging.INFO if report.is_absent else logging.WARNING
            rest = "; nothing is refused, though brimline.enforcement says so" if report.is_wanted else ""
            say(level, "gateway-silent", f"{report.failure}{rest}", kind=report.failure.kind.value)
