"""The rules, as text for nftables. Pure.

One table for a broker. It belongs to the process that made it (``flags owner``): the kernel removes it with that
process, and nobody else can change it. Ports are elements that time out, so that what is not said again ends by itself.

A connection that is turned aside keeps its addresses on both sides: the client's socket is the gateway's, under the
broker's address; the gateway's own connection to the broker comes from the client's address. Each bears a mark of its
own. What the broker answers to the client's address must not leave the machine: a rule of routing sends what bears
``MARK`` to the loopback device (``routes``). What the gateway answers to a client must leave it.

This broker's own fetches from leaders take the same way, from inside: what its user sends to a peer's port is marked on
its way out, routed to the loopback device, and met there by the gateway, under the leader's address.

What docker, firewalld or others have in the kernel is only read (``foreign_rules``), so that doctor can name it.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from brimline.decide.interception import CLIENT_MARK, FETCH_MARK, MARK, OWN_MARK

SECONDS = 3
"""How long an element stays that is not renewed. Whatever hangs, clients go to the broker directly after that."""
SECONDS_WHILE_FULL = 3 * SECONDS
"""The same while a disk is full. Longer: a machine short of CPU renews late, and direct clients fill a full disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """``ports``: of the broker, each with the gateway's own for it. ``spared``: addresses that are left alone.

    ``leaders``: addresses and ports of other brokers, at which user ``fetcher`` fetches; ``for_fetches``: the gateway's
    own port for that. ``passes``: a user whose connections from this machine are left alone.
    """

    node_id: int
    ports: Mapping[int, int]
    spared: tuple[str, ...] = ()
    leaders: tuple[tuple[str, int], ...] = ()
    for_fetches: int | None = None
    fetcher: int = 0
    passes: int | None = None


def table_name(aside: Aside) -> str:
    """With a port of its own: brokers of two clusters on one machine may have the same id."""
    return f"brimline_{aside.node_id}_{min(aside.ports)}"


def made(aside: Aside) -> str:
    """An empty table would let everybody pass; so does this one, until ports are armed."""
    turned = "\n".join(
        f"""
            meta nfproto ipv4 tcp dport {port} tcp dport @armed tproxy ip to 127.0.0.1:{own} accept
            meta nfproto ipv6 tcp dport {port} tcp dport @armed tproxy ip6 to [::1]:{own} accept"""
        for port, own in sorted(aside.ports.items())
    )
    spared = "\n".join(f"            {_family(each)} saddr {each} accept" for each in aside.spared)
    fetched = "\n".join(
        f"            meta skuid {aside.fetcher} {_family(address)} daddr {address} tcp dport {port} "
        f"tcp dport @fetches meta mark set {FETCH_MARK}"
        for address, port in aside.leaders
    )
    # The gateway's connections may have the same user; they have a mark already.
    passing = "\n".join(
        f"            meta mark 0 meta skuid {aside.passes} tcp dport {port} meta mark set {OWN_MARK}"
        for port in sorted(aside.ports)
        if aside.passes is not None
    )
    looped = (
        ""
        if aside.for_fetches is None
        else f"""
            meta mark {FETCH_MARK} meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:{aside.for_fetches} accept
            meta mark {FETCH_MARK} meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:{aside.for_fetches} accept"""
    )
    return f"""
    table inet {table_name(aside)} {{
        flags owner
        set armed {{ type inet_service; flags timeout; }}
        set held {{ type inet_service; flags timeout; }}
        set fetches {{ type inet_service; flags timeout; }}
        chain aside {{
            type filter hook prerouting priority mangle - 5; policy accept;
            meta mark {{ {MARK}, {OWN_MARK} }} accept{looped}
            fib daddr type != local accept
{spared}{turned}
            tcp dport @held tcp flags syn / syn,ack reject with tcp reset
        }}
        chain outward {{
            type route hook output priority mangle - 5; policy accept;
            meta mark {CLIENT_MARK} accept
{fetched}
{passing}
        }}
    }}
    """


def _family(address: str) -> str:
    return "ip6" if ip_address(address).version == 6 else "ip"


def said_again(aside: Aside, *, armed: bool, held: bool, fetches: bool) -> str:
    """For some seconds more, and again where they have run out; what is none of these is taken out."""
    lines = []
    seconds = SECONDS_WHILE_FULL if held else SECONDS
    own, there = aside.ports.keys(), {port for _, port in aside.leaders}
    for name, is_wanted, ports in (("armed", armed, own), ("held", held, own), ("fetches", fetches, there)):
        where = f"element inet {table_name(aside)} {name}"
        for port in sorted(ports):
            # Adding what is there would not make it last longer; removing what is not there would fail.
            lines.append(f"add {where} {{ {port} timeout {seconds}s }}")
            lines.append(f"delete {where} {{ {port} }}")
            if is_wanted:
                lines.append(f"add {where} {{ {port} timeout {seconds}s }}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ForeignRule:
    """A rule of somebody else that sends one of the broker's ports elsewhere."""

    table: str
    chain: str
    text: str


_SENDS_ELSEWHERE = re.compile(r"\b(?:dnat|redirect|tproxy|queue)\b|xt target \"?(?:DNAT|REDIRECT|TPROXY)")
_PORTS = re.compile(r"dport (?:\{ (?P<several>[^}]*) \}|(?P<one>[\d-]+))")


def foreign_rules(listed: str, ports: Collection[int]) -> list[ForeignRule]:
    """Of what ``nft list ruleset`` says, ours left out. iptables-nft, docker and firewalld have theirs there too."""
    found, table, chain = [], "", ""
    for line in map(str.strip, listed.splitlines()):
        word, _, name = line.removesuffix(" {").partition(" ")
        if word == "table":
            table = name
        elif word == "chain":
            chain = name
        elif not table.startswith("inet brimline_") and _SENDS_ELSEWHERE.search(line) and _names(line, ports):
            found.append(ForeignRule(table, chain, line))
    return found


def _names(rule: str, ports: Collection[int]) -> bool:
    """A rule that names no port is for all of them."""
    match = _PORTS.search(rule)
    if match is None:
        return "dport" not in rule
    for each in (match["several"] or match["one"]).split(","):
        first, _, last = each.strip().partition("-")
        if first.isdigit() and any(int(first) <= port <= int(last or first) for port in ports):
            return True
    return False


def removed(aside: Aside) -> str:
    """By whom it belongs to; the kernel removes what belonged to a process that has ended."""
    return f"delete table inet {table_name(aside)}\n"
