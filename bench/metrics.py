"""Rendering 100,000 series against prometheus_client, and 10,000 JMX gauges against py4j's model MBeans."""

import math
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # type: ignore[import-untyped]

from bench.ratio import Comparison, compare_calls
from brimline.metrics import catalogue
from brimline.metrics.board import MetricBoard
from brimline.metrics.jmx import BridgeStatus, JmxBridge
from brimline.metrics.jmx_settings import JmxSettings
from brimline.metrics.metric import LabelValues, MetricFamily
from brimline.metrics.prometheus import PrometheusRenderer

SERIES = 100_000
GAUGES = 10_000
PY4J_GAUGES = 2_000
"""py4j takes seconds for as many; its figure is scaled up."""
ROUNDS = 7
METRIC = catalogue.LOG_RETENTION_SIZE
SERVER_PACKAGE = "java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED"
"""py4j calls by reflection, which the platform's MBean server does not allow unasked."""


def comparisons() -> Iterator[Comparison]:
    yield from rendering()
    yield from beans()


def partitions(count: int) -> LabelValues:
    return tuple((f"payments.orders.v1-{number // 100}", str(number % 100)) for number in range(count))


def rendering() -> Iterator[Comparison]:
    rows = partitions(SERIES)
    values = np.arange(SERIES) % 130
    registry = CollectorRegistry()
    gauge = Gauge(METRIC.prometheus, METRIC.help, METRIC.labels, registry=registry)
    for row, value in zip(rows, values.tolist(), strict=True):
        gauge.labels(*row).set(value)
    theirs = partial(generate_latest, registry)
    warm = PrometheusRenderer()
    family = METRIC.family(rows, values)
    if len(theirs().splitlines()) != len(warm.render([family]).splitlines()):
        raise RuntimeError("the two renderings disagree")
    what = f"render {SERIES:,} series"
    yield compare_calls(f"{what}, all new", theirs, lambda: PrometheusRenderer().render([family]), ROUNDS)
    yield compare_calls(f"{what}, new values", theirs, lambda: warm.render([METRIC.family(rows, values)]), ROUNDS)
    yield compare_calls(f"{what}, nothing new", theirs, lambda: warm.render([family]), ROUNDS)


def beans() -> Iterator[Comparison]:
    register, update = py4j_times()
    rows = partitions(GAUGES)
    board = MetricBoard()
    bridge = JmxBridge.to_jvm(JmxSettings(port=free_port()), board.families)
    board.on_change = bridge.changed
    begin = time.perf_counter()
    bridge.start()
    try:
        wait_for(lambda: bridge.state.status is BridgeStatus.SERVING)
        print(f"(the bridge's JVM was ready after {time.perf_counter() - begin:.2f} s)")
        ours = published(bridge, board, METRIC.family(rows, np.zeros(GAUGES, dtype=np.int64)))
        yield Comparison(what=f"register {GAUGES:,} JMX gauges", unit="ms", theirs=register, ours=ours)
        times = [published(bridge, board, METRIC.family(rows, np.full(GAUGES, n))) for n in range(1, ROUNDS + 1)]
        ours = sorted(times)[ROUNDS // 2]
        yield Comparison(what=f"update {GAUGES:,} JMX gauges", unit="ms", theirs=update, ours=ours)
    finally:
        bridge.close()


def published(bridge: JmxBridge, board: MetricBoard, family: MetricFamily) -> float:
    """Milliseconds until the JVM has confirmed the family."""
    batches = bridge.state.batches
    begin = time.perf_counter()
    board.put(family)
    wait_for(lambda: bridge.state.batches > batches)
    return (time.perf_counter() - begin) * 1000


def py4j_times() -> tuple[float, float]:
    """Milliseconds to register and to update all gauges by remote calls into a JVM, without a class of our own."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark, which brings py4j's jar, is not installed")
    (jar,) = (Path(spec.origin).parent / "jars").glob("py4j-*.jar")
    port = launch_gateway(jarpath=str(jar), die_on_exit=True, javaopts=["--add-opens", SERVER_PACKAGE])
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        return py4j_run(gateway)
    finally:
        gateway.shutdown()


def py4j_run(gateway: Any) -> tuple[float, float]:
    management = gateway.jvm.javax.management
    server = gateway.jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    descriptor = gateway.jvm.javax.management.modelmbean.DescriptorSupport
    attribute_info = gateway.jvm.javax.management.modelmbean.ModelMBeanAttributeInfo
    info = gateway.jvm.javax.management.modelmbean.ModelMBeanInfoSupport
    names = []
    begin = time.perf_counter()
    for row in partitions(PY4J_GAUGES):
        details = descriptor()
        for key, value in (("name", "Value"), ("descriptorType", "attribute"), ("currencyTimeLimit", "-1")):
            details.setField(key, value)
        attributes = gateway.new_array(attribute_info, 1)
        attributes[0] = attribute_info("Value", "int", "Value", True, True, False, details)  # noqa: FBT003
        bean = management.modelmbean.RequiredModelMBean(info("Gauge", "Gauge", attributes, None, None, None))
        assert METRIC.bean is not None
        name = management.ObjectName(METRIC.bean.object_name(row))
        server.registerMBean(bean, name)
        names.append(name)
    registered = time.perf_counter()
    for name in names:
        server.setAttribute(name, management.Attribute("Value", 7))
    updated = time.perf_counter()
    scale = 1000 * GAUGES / PY4J_GAUGES
    return (registered - begin) * scale, (updated - registered) * scale


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not within {math.ceil(seconds)} s")
        time.sleep(0.0002)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
