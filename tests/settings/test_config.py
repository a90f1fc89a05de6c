"""The broker's own file as the guard reads it: the KIPs' names, and every mistake by key, value and line."""

import pytest

from brimline.model import BadInput, Bytes
from brimline.observe.client.config import SecurityProtocol
from brimline.observe.properties.key_stores import ListenerTls
from brimline.settings import keys
from brimline.settings.config import BadConfig
from tests.guard.files import BROKER, FIRST_LINE, config, problems


def test_the_kips_defaults() -> None:
    read = config()

    assert read.number(keys.CHECK_INTERVAL) == 60_000
    assert read.number(keys.MAX_USED_PERCENT) == 99
    assert read.number(keys.MIN_FREE_BYTES) == 1073741824
    assert read.limits.release_margin_percent == 0
    assert read.number(keys.RETENTION_PERCENT) == 100
    assert read.text(keys.ENFORCEMENT) == "observe"


def test_the_kips_keys_under_the_kips_names() -> None:
    read = config("disk.max.used.percent=85\ndisk.min.free.bytes=5000\ndisk.usage.check.interval.ms=2000\n")

    assert read.limits.max_used_percent == 85
    assert read.limits.min_free_bytes == Bytes(5000)
    assert read.pace.interval == 2.0


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("disk.max.used.percent=9", "from 10 to 100"),
        ("disk.max.used.percent=101", "from 10 to 100"),
        ("disk.max.used.percent=99%", "from 10 to 100"),
        ("disk.max.used.percent=", "from 10 to 100"),
        ("disk.min.free.bytes=-1", "from 0 up"),
        ("disk.min.free.bytes=1GB", "from 0 up"),
        ("disk.usage.check.interval.ms=0", "from 1 up"),
        ("log.retention.disk.usage.percent=-1", "from 0 to 100"),
        ("brimline.disk.fast.sampling=yes", "true or false"),
        ("brimline.disk.fast.sampling.floor.ms=99", "from 100 up"),
        ("brimline.metrics.publish=some", "auto, all, none"),
        ("brimline.metrics.port=65536", "from 0 to 65535"),
        ("brimline.log.format=xml", "text, json"),
        ("brimline.reject.error=57", "56, 128, 19, 44, KAFKA_STORAGE_ERROR"),
        ("brimline.gateway.max.connections=0", "from 1 to 1000000"),
        ("brimline.gateway.header.timeout.ms=99", "from 100 up"),
        ("brimline.gateway.drain.timeout.ms=-1", "from 0 up"),
        ("brimline.reject.memory.ms=999", "from 1000 up"),
        ("brimline.gateway.refusals.per.second=0", "from 1 to 1000000"),
    ],
)
def test_a_wrong_value_is_named_with_key_value_range_file_and_line(line: str, allowed: str) -> None:
    key, _, value = line.partition("=")

    (problem,) = problems(line)

    assert problem.startswith(f"server.properties line {FIRST_LINE}: {key}")
    assert value in problem
    assert allowed in problem


def test_all_mistakes_are_told_at_once() -> None:
    found = problems("disk.max.used.percent=5\ndisk.min.free.bytes=x\nbrimline.log.level=loud\n")

    assert [problem.split(":")[0] for problem in found] == [
        f"server.properties line {FIRST_LINE + number}" for number in range(3)
    ]


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("brimline.metric.port", "brimline.metrics.port"),
        ("brimline.enforcment", "brimline.enforcement"),
        ("brimline.jmx.prot", "brimline.jmx.port"),
        ("brimline.gateway.listener", "brimline.gateway.listeners"),
    ],
)
def test_an_unknown_key_of_ours_is_an_error_with_a_suggestion(key: str, near: str) -> None:
    (problem,) = problems(f"{key}=1")

    assert f"did you mean {near}?" in problem


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("disk.max.used.percents", "disk.max.used.percent"),
        ("disk.max.used.precent", "disk.max.used.percent"),
        ("log.retention.disk.usage.pct", "log.retention.disk.usage.percent"),
        ("log.retention.disk.percent", "log.retention.disk.usage.percent"),
    ],
)
def test_a_mistyped_limit_is_a_warning_because_kafka_would_be_silent(key: str, near: str) -> None:
    read = config(f"{key}=80\n")

    assert any(f"did you mean {near}?" in warning for warning in read.warnings)


def test_the_second_spelling_is_accepted_with_a_warning() -> None:
    read = config("disk.free.limit.bytes=123\n")

    assert read.limits.min_free_bytes == 123
    assert any("second spelling" in warning for warning in read.warnings)


def test_both_spellings_with_one_value_are_fine() -> None:
    assert config("disk.free.limit.bytes=123\ndisk.min.free.bytes=123\n").limits.min_free_bytes == 123


def test_both_spellings_with_two_values_contradict_each_other() -> None:
    (problem,) = problems("disk.free.limit.bytes=123\ndisk.min.free.bytes=124\n")

    assert "contradicts disk.min.free.bytes=124" in problem
    assert f"line {FIRST_LINE + 1}" in problem


def test_a_ceiling_below_10_is_warned_of_and_holds() -> None:
    read = config("log.retention.disk.usage.percent=8\n")

    assert read.warnings == (
        f"server.properties line {FIRST_LINE}: log.retention.disk.usage.percent=8: a ceiling below 10 % deletes "
        "almost everything; was 80 meant?",
    )
    assert read.reclaim_policy.ceiling_percent == 8
    assert config("log.retention.disk.usage.percent=10\n").warnings == ()


def test_enforcement_is_by_the_gateway_or_not_at_all() -> None:
    (problem,) = problems("brimline.enforcement=enforce\n")

    assert config("brimline.enforcement=gateway\n").is_enforcing
    assert not config().is_enforcing
    assert "allowed: observe, gateway" in problem


@pytest.mark.parametrize(
    ("written", "code"),
    [("56", 56), ("KAFKA_STORAGE_ERROR", 56), ("not_enough_space", 128), ("19", 19), ("Policy_Violation", 44)],
)
def test_the_error_of_a_refusal_by_number_or_name(written: str, code: int) -> None:
    assert config(f"brimline.reject.error={written}\n").reject_error == code


def test_the_gateways_defaults() -> None:
    read = config()

    assert read.reject_error == 56
    assert str(read.state_dir) == "/var/lib/brimline"
    assert read.number(keys.GATEWAY_MAX_CONNECTIONS) == 10_000
    assert read.seconds(keys.GATEWAY_HEADER_TIMEOUT) == 10.0
    assert read.seconds(keys.GATEWAY_DRAIN_TIMEOUT) == 15.0
    assert read.seconds(keys.REJECT_MEMORY) == 300.0
    assert read.number(keys.GATEWAY_REFUSALS) == 20


@pytest.mark.parametrize("path", ["var/lib/brimline", "", f"/{'x' * 100}"])
def test_a_state_dir_that_no_socket_can_be_in(path: str) -> None:
    (problem,) = problems(f"brimline.state.dir={path}\n")

    assert problem.startswith(f"server.properties line {FIRST_LINE}: brimline.state.dir")


FRONTED = BROKER.replace("0.0.0.0:9092", "127.0.0.1:19092")
KEY_STORE = "listener.name.client.ssl.keystore."


def test_the_key_store_of_a_fronted_listener_is_read() -> None:
    tls = config(f"{KEY_STORE}location=/etc/kafka/key.p12\n{KEY_STORE}password=hunter2\n", FRONTED).tls["CLIENT"]

    assert isinstance(tls, ListenerTls)
    assert tls.key_store.location == "/etc/kafka/key.p12"
    assert tls.key_store.store_password == "hunter2"


def test_without_a_gateway_the_brokers_key_store_is_none_of_our_business() -> None:
    secret = (
        f"config.providers=vault\nconfig.providers.vault.class=com.example.Vault\n{KEY_STORE}password=${{vault:a:b}}"
    )

    assert config(secret).tls == {}


def test_a_key_store_that_cannot_be_used_does_not_keep_the_guard_from_its_work() -> None:
    secret = (
        f"config.providers=vault\nconfig.providers.vault.class=com.example.Vault\n{KEY_STORE}password=${{vault:a:b}}"
    )

    problem = config(secret, FRONTED).tls["CLIENT"]

    assert isinstance(problem, BadInput)
    assert "config provider 'vault'" in str(problem)


def test_the_secrets_of_a_key_store_come_from_config_providers() -> None:
    added = (
        "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        f"{KEY_STORE}location=/k\n{KEY_STORE}password=${{env:STORE_PASSWORD}}\n"
    )

    read = config(added, FRONTED, environment={"STORE_PASSWORD": "hunter2"})

    tls = read.tls["CLIENT"]
    assert isinstance(tls, ListenerTls)
    assert tls.key_store.store_password == "hunter2"
    assert "hunter2" not in repr(read)


def test_a_key_that_stands_twice_is_warned_about_and_the_last_counts() -> None:
    read = config("disk.max.used.percent=80\ndisk.max.used.percent=70\n")

    assert read.limits.max_used_percent == 70
    assert any(f"lines {FIRST_LINE}, {FIRST_LINE + 1}" in warning for warning in read.warnings)


def test_continuation_lines_are_read_as_java_reads_them() -> None:
    read = config("disk.max.used.percent=\\\n   75\n")

    assert read.limits.max_used_percent == 75


def test_the_admin_client_uses_the_brokers_own_listener() -> None:
    read = config()

    assert read.admin.bootstrap_servers == ("127.0.0.1:9093",)
    assert read.admin.security_protocol is SecurityProtocol.PLAINTEXT
    assert read.admin.client_id == "brimline-guard"


def test_another_listener_and_its_credentials_by_name() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="g" password="s";'
    read = config(
        f"brimline.admin.listener=client\nbrimline.admin.sasl.mechanism=PLAIN\nbrimline.admin.sasl.jaas.config={jaas}\n"
    )

    assert read.admin.bootstrap_servers == ("broker7.example.org:9092",)
    assert read.admin.security_protocol is SecurityProtocol.SASL_SSL
    assert (read.admin.sasl_username, read.admin.sasl_password) == ("g", "s")


def test_an_unknown_listener_is_refused_with_those_there_are() -> None:
    (problem,) = problems("brimline.admin.listener=INSIDE\n")

    assert f"line {FIRST_LINE}" in problem
    assert "CLIENT, ADMIN" in problem


def test_an_unknown_client_property_is_an_error_with_a_suggestion() -> None:
    (problem,) = problems("brimline.admin.sasl.mechanisms=PLAIN\n")

    assert "did you mean brimline.admin.sasl.mechanism?" in problem


def test_no_secret_is_ever_shown() -> None:
    with pytest.raises(BadConfig) as refused:
        config("brimline.admin.listener=CLIENT\nbrimline.admin.sasl.jaas.config=hunter2\n")

    assert "hunter2" not in str(refused.value)


def test_pages_are_for_this_machine_alone_by_default() -> None:
    assert config().text(keys.METRICS_HOST) == "127.0.0.1"


def test_jmx_is_off_without_a_port() -> None:
    assert config().jmx is None


def test_jmx_properties_are_passed_on() -> None:
    read = config("brimline.jmx.port=9999\nbrimline.jmx.com.sun.management.jmxremote.ssl=true\n")

    assert read.jmx is not None
    assert read.jmx.properties == {"com.sun.management.jmxremote.ssl": "true"}


def test_every_key_has_a_sentence_and_a_place_in_the_table() -> None:
    table = keys.markdown_table()

    for key in keys.KEYS:
        assert key.sentence.endswith(".")
        assert f"| `{key.name}` |" in table


def test_every_default_is_allowed() -> None:
    for key in keys.KEYS:
        assert key.parse(str(key.default)) == key.default


def test_a_controllers_file_is_refused() -> None:
    (problem, *_) = problems(broker=BROKER.replace("process.roles=broker", "process.roles=controller"))

    assert "controller" in problem
