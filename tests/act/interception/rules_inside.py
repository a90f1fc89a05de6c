"""The helper and a real kernel, in a network namespace of its own: a broker and a gateway that say who they are.

``python -m tests.act.interception.rules_inside``: an assertion that fails is its exit code.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from brimline.act.interception.link import HelperLink, rules_of_others
from brimline.act.interception.nftables import InterceptionFailed
from brimline.decide.interception import CLIENT_MARK, MARK, OWN_MARK
from brimline.gateway.net.transparent import dial_as, dial_leader, own_ports
from tests.waiting import eventually

SO_MARK = 36
PORT = 9092
OUTSIDE = "192.0.2.7"
OWN, AWAY = "198.51.100.1", "198.51.100.2"


def serve(name: str, server: socket.socket) -> list[socket.socket]:
    """Whoever connects hears the name and the address that is seen of him; the connections stay open."""
    kept: list[socket.socket] = []

    def run() -> None:
        while True:
            accepted, peer = server.accept()
            kept.append(accepted)
            accepted.sendall(f"{name} sees {peer[0].removeprefix('::ffff:')}".encode())

    threading.Thread(target=run, daemon=True).start()
    return kept


def dialled(host: str = "127.0.0.1") -> tuple[socket.socket, str]:
    client = socket.create_connection((host, PORT), timeout=5)
    return client, client.recv(100).decode()


def dialled_under(mark: int) -> tuple[socket.socket, str]:
    client = socket.socket()
    client.settimeout(5)
    client.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
    client.connect(("127.0.0.1", PORT))
    return client, client.recv(100).decode()


def is_reset(client: socket.socket) -> bool:
    with suppress(ConnectionResetError, ConnectionAbortedError):
        return client.recv(1) == b""
    return True


def is_refused() -> bool:
    with suppress(ConnectionRefusedError):
        dialled()
        return False
    return True


def shown(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def laid() -> str:
    switch = Path("/proc/sys/net/ipv4/tcp_fwmark_accept").read_text()
    rules = [shown("nft", "list", "ruleset"), shown("ip", "rule"), shown("ip", "-6", "rule")]
    return "".join([*rules, shown("ip", "route", "show", "table", "25202"), switch])


def other_machine() -> int:
    """Another network namespace, behind a cable; it ends with this one. Returns its first process."""
    holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"])
    inside = f"nsenter --target {holder.pid} --net ip"
    eventually(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink())
    for command in (
        f"ip link add cable type veth peer name cable netns {holder.pid}",
        f"ip address add {OWN}/24 dev cable",
        "ip link set cable up",
        f"{inside} address add {AWAY}/24 dev cable",
        f"{inside} link set cable up",
    ):
        subprocess.run(command.split(), check=True)
    return holder.pid


def dialled_from_away(machine: int) -> str:
    program = f"import socket; print(socket.create_connection(('{OWN}', {PORT}), 5).recv(100).decode(), end='')"
    command = ["nsenter", "--target", str(machine), "--net", sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def serve_away(machine: int) -> "subprocess.Popen[bytes]":
    """A leader on the other machine."""
    program = (
        f"import socket; server = socket.create_server(('{AWAY}', {PORT})); kept = []\n"
        "while True:\n    kept.append(server.accept()); kept[-1][0].sendall(b'leader sees ' + kept[-1][1][0].encode())"
    )
    command = ["nsenter", "--target", str(machine), "--net", sys.executable, "-c", program]
    leader = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command])
    eventually(lambda: answers(AWAY))
    return leader


def answers(host: str) -> bool:
    with suppress(OSError):
        dialled(host)
        return True
    return False


def helper_as_a_service(path: Path) -> "subprocess.Popen[bytes]":
    """One that is started as systemd does it, for whoever calls there."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    path.chmod(0o666)
    server.listen()
    program = (
        "import os, socket, sys; from brimline.act.interception.helper import main\n"
        f"line, _ = socket.socket(fileno={server.fileno()}).accept()\n"
        "os.dup2(line.fileno(), 0); os.dup2(line.fileno(), 1); line.close(); sys.exit(main([]))"
    )
    return subprocess.Popen([sys.executable, "-c", program], pass_fds=[server.fileno()])


@contextmanager
def as_another_user() -> Iterator[None]:
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def helpers() -> list[int]:
    return list(map(int, shown("pgrep", "-P", str(os.getpid()), "-f", "interception.helper").split()))


def kill_helper() -> None:
    (helper,) = helpers()
    os.kill(helper, signal.SIGKILL)


def main() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    away = other_machine()
    before = laid()
    serve("broker", socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True))
    sockets = own_ports(CLIENT_MARK)
    for each in sockets:
        serve("gateway", each)
    own = {PORT: sockets[0].getsockname()[1]}
    rules = HelperLink(1, [PORT])

    direct, heard = dialled()
    assert heard == "broker sees 127.0.0.1"
    rules.open(own, [])
    second, heard = dialled()
    assert heard.startswith("broker"), "rules that are laid turn nobody aside before they are armed"
    rules.say(armed=True, held=False)
    aside, heard = dialled()
    assert heard == "gateway sees 127.0.0.1"
    aside6, heard = dialled("::1")
    assert heard == "gateway sees ::1"
    assert rules.count() == (2, 2, 0)
    assert dialled_from_away(away) == f"gateway sees {AWAY}"
    assert rules.count() == (2, 3, 0), "the gateway has not closed its side"

    # The gateway's own way to the broker: not turned aside, and the broker sees the client's address.
    upstream = socket.socket()
    upstream.settimeout(5)
    assert dial_as(upstream, (OUTSIDE, 1234), ("127.0.0.1", PORT), MARK, ())
    assert upstream.recv(100).decode() == f"broker sees {OUTSIDE}"

    assert rules.cut(marked=False, most=1) == 1
    assert rules.cut(marked=False, most=10) == 1
    assert is_reset(direct)
    assert is_reset(second)
    assert rules.count() == (0, 4, 0)

    # What is not renewed runs out; renewed late, it is there again.
    eventually(lambda: dialled()[1].startswith("broker"))
    rules.say(armed=True, held=False)
    assert dialled()[1].startswith("gateway")

    # Whoever else sets a mark of ours passes, and is counted as such, not as one that goes through the gateway.
    before_them = rules.count()
    passing = [dialled_under(mark) for mark in (MARK, OWN_MARK)]
    assert [heard for _, heard in passing] == ["broker sees 127.0.0.1"] * 2
    assert rules.count() == (*before_them[:2], 2)
    for client, _ in passing:
        client.close()
    eventually(lambda: rules.count().passing == 0)

    # Refused where no gateway takes them; spared addresses are not touched.
    rules.say(armed=False, held=True)
    assert is_refused()
    rules.open(own, ["127.0.0.1"])
    rules.say(armed=True, held=True)
    spared, heard = dialled()
    assert heard == "broker sees 127.0.0.1"
    assert dialled("::1")[1].startswith("gateway")
    assert rules.cut(marked=False, most=10) == 0

    rules.disarm()
    assert dialled("::1")[1].startswith("broker")
    assert rules.close()[0] > 0
    assert "fwmark" in laid(), "the broker's answers to those that go on would leave the machine"
    for still in (upstream, aside, aside6, spared):
        still.sendall(b"goes on")
    assert rules.cut(marked=True, most=100) > 0
    assert rules.close() == (0, False)
    assert laid() == before

    # Own fetches, on their way out: met by the gateway under the leader's address; others' ports are left alone.
    leader = serve_away(away)
    taking = own_ports(CLIENT_MARK)
    met = serve("gateway", taking[0])
    rules.open(own, [], [(AWAY, PORT)], taking[0].getsockname()[1])
    rules.say(armed=True, held=False, fetches=False)
    rules.cut(marked=False, most=100)
    before_it, heard = dialled(AWAY)
    assert heard == f"leader sees {OWN}"
    assert rules.count()[0] == 0, "fetches are not turned aside yet"
    rules.say(armed=True, held=False, fetches=True)
    assert rules.count()[0] == 1
    fetching, heard = dialled(AWAY)
    assert heard == f"gateway sees {OWN}"
    onward = socket.socket()
    onward.settimeout(5)
    assert dial_leader(onward, met[0])
    assert onward.recv(100).decode() == f"leader sees {OWN}"
    assert rules.count()[0] == 1, "what was turned aside is not a direct one"
    assert rules.cut(marked=False, most=10) == 1
    assert is_reset(before_it)
    fetching.sendall(b"goes on")
    onward.close()
    rules.cut(marked=True, most=100)
    rules.close()
    leader.kill()
    leader.wait()
    assert laid() == before

    # The guard's own client passes by, where the guard has a user of its own; others of this machine do not.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        service = helper_as_a_service(Path(folder, "helper.sock"))
        of_a_user = HelperLink(1, [PORT], Path(folder, "helper.sock"))
        with as_another_user():
            of_a_user.open(own, [])
        of_a_user.cut(marked=False, most=100)
        of_a_user.say(armed=True, held=False)
        with as_another_user():
            own_client, heard = dialled()
        assert heard == "broker sees 127.0.0.1"
        assert dialled()[1] == "gateway sees 127.0.0.1"
        assert of_a_user.count()[0] == 0, "it is not ended as a direct one"
        of_a_user.say(armed=False, held=True)
        with as_another_user():
            assert not is_refused()
        assert is_refused()
        of_a_user.cut(marked=True, most=100)
        of_a_user.close()
        own_client.sendall(b"goes on")
        of_a_user.end()
        assert service.wait(10) == 0
    assert laid() == before

    # A broker of another cluster, with the same id: its rules stand beside, and the end of one leaves the other's.
    of_another = HelperLink(1, [PORT + 1])
    rules.open(own, [])
    of_another.open({PORT + 1: own[PORT]}, [])
    of_another.say(armed=True, held=False)
    rules.say(armed=True, held=False)
    assert dialled()[1].startswith("gateway")
    of_another.close()
    of_another.end()
    assert f"brimline_1_{PORT} " in laid()
    rules.say(armed=True, held=False)
    assert dialled()[1].startswith("gateway")
    rules.cut(marked=True, most=100)
    rules.close()
    eventually(lambda: len(helpers()) == 1)
    assert laid() == before

    # What others have is named, and left as it is.
    assert rules_of_others({PORT}) == []
    docker = f"table ip nat {{ chain DOCKER {{ tcp dport {PORT} dnat to 172.17.0.2:{PORT} ; }} ; }}"
    subprocess.run(["nft", docker], check=True)
    (foreign,) = rules_of_others({PORT}) or []
    assert (foreign.table, foreign.chain) == ("ip nat", "DOCKER")
    subprocess.run(["nft", "delete table ip nat"], check=True)

    # A switch that somebody else has on stays on.
    switch = Path("/proc/sys/net/ipv4/tcp_fwmark_accept")
    switch.write_text("1")
    rules.open(own, [])
    rules.close()
    assert switch.read_text().strip() == "1"
    rules.open(own, [])
    kill_helper()
    with suppress(InterceptionFailed):
        rules.close()
        raise AssertionError("a helper that is gone answered")
    rules.close()
    assert switch.read_text().strip() == "1", "also where the one that found it on was killed"
    switch.write_text("0")
    assert laid() == before
    for wrong in ({22: 40001}, {PORT: 22}, {70_000: 40001}, {PORT: 65_536}, {PORT: -1}, {PORT: 1 << 70}):
        with suppress(InterceptionFailed):
            rules.open(wrong, [])
            raise AssertionError("a port of the machine's own, or none at all, was turned aside")
    nowhere = HelperLink(1, [70_000])
    assert nowhere.close() == (0, False)
    assert nowhere.count() == (0, 0, 0)
    nowhere.end()
    eventually(lambda: len(helpers()) == 1)

    # Whoever kills the helper removes its rules; the next one sweeps the rest.
    rules.open(own, [])
    rules.say(armed=True, held=True)
    kill_helper()
    eventually(lambda: "brimline" not in shown("nft", "list", "ruleset"))
    with suppress(InterceptionFailed):
        rules.say(armed=True, held=True)
        raise AssertionError("a helper that is gone answered")
    rules.close()
    assert laid() == before
    rules.end()


if __name__ == "__main__":
    main()
