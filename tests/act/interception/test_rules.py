"""Rules in a real kernel: who is turned aside, who is not, and that nothing is left."""

import subprocess
import sys

from brimline.act.interception.ruleset import Aside, made, said_again
from tests.namespaces import needs_network_namespaces
from tests.waiting import PATIENCE_SECONDS


@needs_network_namespaces
def test_connections_are_turned_aside_cut_refused_and_spared_and_nothing_is_left() -> None:
    command = ["unshare", "--net", sys.executable, "-m", "tests.act.interception.rules_inside"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)

    assert done.returncode == 0, done.stderr


def test_rules_name_only_the_ports_of_the_broker_and_spare_whom_they_are_told() -> None:
    text = made(Aside(node_id=7, ports={9092: 40001, 9094: 40002}, spared=("10.0.0.2", "fd00::2")))

    assert "table inet brimline_7" in text
    assert "flags owner" in text
    assert "dport 9092 tcp dport @armed tproxy ip to 127.0.0.1:40001" in text
    assert "dport 9094 tcp dport @armed tproxy ip6 to [::1]:40002" in text
    assert text.index("ip saddr 10.0.0.2 accept") < text.index("ip6 saddr fd00::2 accept") < text.index("tproxy")


def test_what_is_said_again_lasts_some_seconds_and_what_is_not_wanted_goes() -> None:
    lines = said_again(7, [9092], armed=True, held=False).splitlines()

    assert lines[-1] == "delete element inet brimline_7 held { 9092 }"
    assert lines[2] == "add element inet brimline_7 armed { 9092 timeout 3s }"
