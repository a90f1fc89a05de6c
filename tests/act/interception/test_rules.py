"""Rules in a real kernel: who is turned aside, who is not, and that nothing is left."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from brimline.act.interception.link import HelperLink
from brimline.act.interception.nftables import InterceptionFailed, Nftables, first_line
from brimline.act.interception.ruleset import SECONDS, Aside, foreign_rules, made, said_again
from tests.namespaces import needs_network_namespaces
from tests.waiting import PATIENCE_SECONDS


@needs_network_namespaces
def test_connections_are_turned_aside_cut_refused_and_spared_and_nothing_is_left() -> None:
    command = ["unshare", "--net", sys.executable, "-m", "tests.act.interception.rules_inside"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)

    assert done.returncode == 0, done.stderr


def test_what_is_missing_is_one_sentence() -> None:
    with pytest.raises(InterceptionFailed, match=r"^libnothere.so is not installed: apt install nftables"):
        Nftables("libnothere.so")
    # As nft 1.0.6 has it of a kernel without the expression that the marks point to.
    said = "Error: Could not process rule: No such file or directory\n  queue num 3;\n  ^^^^^"
    assert first_line(said).startswith("the kernel lacks a part: modprobe nft_tproxy")


@needs_network_namespaces
def test_a_helper_without_its_right_says_so_and_the_guard_may_ask_again() -> None:
    program = (
        "from brimline.act.interception.link import HelperLink\n"
        "from brimline.act.interception.nftables import InterceptionFailed\n"
        "for _ in range(2):\n"
        "    try:\n        HelperLink(1, [9092]).open({9092: 40001}, [])\n"
        "    except InterceptionFailed as error:\n        print(error)\n"
    )
    without = ["setpriv", "--bounding-set=-net_admin"]
    done = subprocess.run([*without, sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["CAP_NET_ADMIN is needed"] * 2
    assert done.stderr == "", "neither the library nor a helper that ends says more"


def test_rules_name_only_the_ports_of_the_broker_and_spare_whom_they_are_told() -> None:
    text = made(Aside(node_id=7, ports={9092: 40001, 9094: 40002}, spared=("10.0.0.2", "fd00::2")))

    assert "table inet brimline_7_9092 {" in text
    assert "flags owner" in text
    assert "dport 9092 tcp dport @armed tproxy ip to 127.0.0.1:40001" in text
    assert "dport 9094 tcp dport @armed tproxy ip6 to [::1]:40002" in text
    assert text.index("ip saddr 10.0.0.2 accept") < text.index("ip6 saddr fd00::2 accept") < text.index("tproxy")


def test_what_is_said_again_lasts_some_seconds_and_what_is_not_wanted_goes() -> None:
    lines = said_again(Aside(node_id=7, ports={9092: 1}), armed=True, held=False, fetches=False).splitlines()

    assert lines[-1] == "delete element inet brimline_7_9092 held { 9092 }"
    assert lines[2] == "add element inet brimline_7_9092 armed { 9092 timeout 3s }"
    full = said_again(Aside(node_id=7, ports={9092: 1}), armed=True, held=True, fetches=False).splitlines()
    assert full[2] == "add element inet brimline_7_9092 armed { 9092 timeout 9s }", "direct clients fill a full disk"


def test_a_helper_that_is_slow_is_waited_for_and_one_that_has_ended_is_not(tmp_path: Path) -> None:
    service = socket.create_server(str(tmp_path / "helper"), family=socket.AF_UNIX)
    rules = HelperLink(1, [9092], tmp_path / "helper")

    def answer_late_then_end() -> None:
        line, _ = service.accept()
        with line:
            line.recv(1000)
            time.sleep(SECONDS)  # so long that rules of a disk with room have run out
            line.sendall(b"{}\n")
            line.recv(1000)

    helper = threading.Thread(target=answer_late_then_end)
    helper.start()
    rules.say(armed=True, held=True)
    with pytest.raises(InterceptionFailed, match="it has ended"):
        rules.say(armed=True, held=True)
    helper.join()
    service.close()


# As nft 1.0.6 lists what iptables-nft, docker and we have made.
LISTED = """
table ip nat {
	chain DOCKER {
		iifname != "docker0" tcp dport 9092 counter packets 0 bytes 0 dnat to 172.17.0.2:9092
		iifname != "docker0" tcp dport 8080 counter packets 0 bytes 0 dnat to 172.17.0.3:80
		meta l4proto tcp tcp dport { 9093, 9094 } counter packets 0 bytes 0 redirect to :1234
	}
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 172.17.0.2 ip daddr 172.17.0.2 tcp dport 9092 counter packets 0 bytes 0 masquerade
	}
}
table ip mangle {
	chain PREROUTING {
		tcp dport 9000-9100 counter packets 0 bytes 0 xt target TPROXY
	}
}
table inet brimline_1_9092 { # progname python
	chain aside {
		meta nfproto ipv4 tcp dport 9092 tcp dport @armed tproxy ip to 127.0.0.1:40001 accept
	}
}
"""


def test_rules_of_others_are_named_where_they_send_a_port_of_the_broker_elsewhere() -> None:
    found = [(each.table, each.chain, each.text.split()[-1]) for each in foreign_rules(LISTED, {9092})]

    assert found == [("ip nat", "DOCKER", "172.17.0.2:9092"), ("ip mangle", "PREROUTING", "TPROXY")]
    assert [each.text.split()[-1] for each in foreign_rules(LISTED, {9094})] == [":1234", "TPROXY"]
    assert foreign_rules(LISTED, {19092}) == []


def test_why_a_helper_has_ended_is_told_every_time(tmp_path: Path) -> None:
    """Also where it ended before it was asked: then the line breaks."""
    service = socket.create_server(str(tmp_path / "helper"), family=socket.AF_UNIX)
    rules = HelperLink(1, [9092], tmp_path / "helper")

    def end_before_the_question() -> None:
        line, _ = service.accept()
        line.sendall(b'{"error": "no library", "ended": true}\n')
        line.close()

    for _ in range(2):
        helper = threading.Thread(target=end_before_the_question)
        helper.start()
        with pytest.raises(InterceptionFailed, match=r"^no library$"):
            rules.disarm()
        helper.join()
    service.close()
