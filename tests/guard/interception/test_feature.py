"""What interception takes from the rest of the guard."""

import pytest

from brimline.decide.admission import FenceCause
from brimline.guard.gateway_link.feature import GatewayLink
from brimline.guard.gateway_link.task import GatewayReport
from brimline.model import Failure, FailureKind
from tests.guard.gateways import fence, state
from tests.guard.test_publish import Published


@pytest.mark.parametrize("cause", FenceCause)
def test_a_fence_by_hand_is_remembered_when_the_gateway_is_lost(cause: FenceCause) -> None:
    """Clients are not let through at once then. A full disk is seen by the guard itself."""
    link, is_fenced = GatewayLink(Published().core), cause is FenceCause.MANUAL
    link.changed(GatewayReport(is_wanted=True, state=state(fences=[fence(topic="t", cause=cause.value)])))
    assert link.core.is_fenced is is_fenced

    link.changed(GatewayReport(is_wanted=True, failure=Failure(kind=FailureKind.GONE, message="gone")))
    assert link.core.is_fenced is is_fenced

    link.changed(GatewayReport(is_wanted=True, state=state()))
    assert not link.core.is_fenced
