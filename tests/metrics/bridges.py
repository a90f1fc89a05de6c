"""A real bridge for the length of a ``with`` block."""

from collections.abc import Iterator
from contextlib import contextmanager

from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import BridgeStatus, JmxBridge
from brimline.metrics.jmx_settings import JmxSettings
from tests.waiting import eventually


@contextmanager
def serving(board: MetricBoard, settings: JmxSettings) -> Iterator[JmxBridge]:
    bridge = JmxBridge.to_jvm(settings, board.families)
    board.on_change = bridge.changed
    bridge.start()
    try:
        eventually(lambda: bridge.state.status is BridgeStatus.SERVING)
        yield bridge
    finally:
        bridge.close()
