"""The process that holds the rules of one broker, with the one capability that this takes (CAP_NET_ADMIN).

It knows a few words and nothing of Kafka. One JSON object a line, from whoever started it, and one back::

    {"do": "open", "node": 1, "ports": {"9092": 40001}, "spared": [],
     "leaders": [["10.0.0.2", 9094]], "for_fetches": 40002}            rules that turn nobody aside yet
    {"do": "say", "armed": true, "held": false, "fetches": false}      for some seconds, who is turned aside
    {"do": "cut", "marked": false, "most": 250}                        ends connections → {"cut": 250}
    {"do": "count"}                                       → {"direct": 17, "marked": 40, "passing": 0}
    {"do": "disarm"}                                                   no rules; what was turned aside goes on
    {"do": "close", "ports": [9092]}                                   as it was before → {"left": 2, …}

Routes stay as long as a connection passes through a gateway: without them the broker's answers would leave the machine.

It removes its rules when its input ends, and itself ends when nobody needs the routes or another helper has come; the
kernel removes the table with it, however it ends. ``--sweep`` removes what is left of one that was killed.
"""

import argparse
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, TextIO

from brimline.act.interception import routes
from brimline.act.interception.nftables import InterceptionFailed, Nftables
from brimline.act.interception.ruleset import Aside, made, removed, said_again
from brimline.act.interception.sockets import Connected, SocketDiagnosis
from brimline.decide.interception import CLIENT_MARK, MARK, OWN_MARK
from brimline.documents.codec import read_json

Json = Mapping[str, Any]
_FIRST_PORT, _LAST_PORT = 1024, 65535
"""Below are the machine's own services: no broker is there."""
_ANY_TABLE = "table inet brimline_"
_ANY_PORT = 0
_LOOK_AGAIN_SECONDS = 0.5
_MARKS = (MARK, CLIENT_MARK)


class HeldRules:
    def __init__(self, caller: int = 0) -> None:
        """``caller``: the user who gives the orders. One that is root's or the broker's is not his alone."""
        self._caller = caller
        self._aside: Aside | None = None
        self._ports: Collection[int] = ()
        self._is_made = False
        self._turns_fetches = False
        self._nftables = Nftables()
        self._sockets = SocketDiagnosis()

    def open(
        self,
        node: int,
        ports: Mapping[str, int],
        spared: list[str],
        leaders: list[tuple[str, int]],
        for_fetches: int | None,
    ) -> Json:
        # What is not a number or an address never becomes a part of a rule.
        asked = {_port(port): _port(own) for port, own in ports.items()}
        fetcher = self._sockets.listens_as(asked) or 0
        wanted = Aside(
            node_id=int(node),
            ports=asked,
            spared=tuple(sorted(str(ip_address(each.partition("%")[0])) for each in spared)),
            leaders=tuple((str(ip_address(address.partition("%")[0])), _port(port)) for address, port in leaders),
            for_fetches=None if for_fetches is None else _port(for_fetches),
            fetcher=fetcher,
            passes=self._caller if self._caller not in (0, fetcher) else None,
        )
        if wanted != self._aside or not self._is_made:
            before = removed(self._open) if self._is_made else ""
            self._nftables.run(before + made(wanted))
            self._aside, self._ports, self._is_made = wanted, tuple(wanted.ports), True
            routes.lay()
        return {}

    def say(self, *, armed: bool, held: bool, fetches: bool) -> Json:
        self._turns_fetches = fetches
        self._nftables.run(said_again(self._open, armed=armed, held=held, fetches=fetches))
        return {}

    def count(self) -> Json:
        direct, marked = self._direct_and_marked()
        return {"direct": len(direct), "marked": len(marked), "passing": len(self._passing())}

    def cut(self, *, marked: bool, most: int) -> Json:
        chosen = self._direct_and_marked()[marked]
        return {"cut": sum(map(self._sockets.end, chosen[:most]))}

    def disarm(self) -> Json:
        if self._is_made:
            self._nftables.run(removed(self._open))
            self._is_made = self._turns_fetches = False
        return {}

    def close(self, ports: Collection[int] = ()) -> Json:
        """``left``: connections that pass through a gateway at these ports; ``is_used``: so that routes stay."""
        self.disarm()
        self._aside, self._ports = None, tuple(port for port in map(int, ports) if 0 < port <= _LAST_PORT)
        marked = [each for each in self._sockets.at({_ANY_PORT}) if each.mark in _MARKS]
        is_alone = _ANY_TABLE not in self._nftables.run("list tables")
        if is_alone and not marked:
            routes.sweep()
        return {"left": sum(each.own_port in self._ports for each in marked), "is_used": is_alone and bool(marked)}

    @property
    def _open(self) -> Aside:
        if self._aside is None:
            raise InterceptionFailed("no ports were given (open)")
        return self._aside

    def _direct_and_marked(self) -> tuple[list[Connected], list[Connected]]:
        leaders, spared = (self._aside.leaders, self._aside.spared) if self._aside else ((), ())
        there = {port for _, port in leaders}
        found = self._sockets.at({*self._ports, *there})
        passing = {each.own for each in self._passing()}
        marked = [each for each in found if each.mark in _MARKS and not (passing and each.peer in passing)]
        ours = (each for each in found if each.mark not in (*_MARKS, OWN_MARK) and each.own_port in self._ports)
        direct = [each for each in ours if not spared or each.peer[0] not in spared]
        if self._turns_fetches:
            # The other side of a fetch that was turned aside is the gateway's socket, under the leader's address.
            met = {(each.peer, each.own) for each in marked}
            direct += [
                each
                for each in self._sockets.towards(there)
                if each.peer in leaders
                and each.user == self._open.fetcher
                and each.mark not in _MARKS
                and (each.own, each.peer) not in met
            ]
        return direct, marked

    def _passing(self) -> list[Connected]:
        """Of others on this machine, with a mark that lets the gateway's and the guard's own pass. Only the gateway's
        bear it under another's address, and the guard's bear none: their packets are marked."""
        there = self._sockets.towards(self._ports)
        return [each for each in there if each.mark == OWN_MARK or (each.mark == MARK and not each.is_transparent)]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="brimline-interception",
        description="Holds the nftables rules that send clients of a broker to its gateway. Started by the guard.",
    )
    parser.add_argument("--sweep", action="store_true", help="remove what a killed one has left, and end")
    options = parser.parse_args(words)
    try:
        if not options.sweep:
            return serve(HeldRules(_caller()), sys.stdin, sys.stdout)
        HeldRules().close()
    except InterceptionFailed as error:
        if options.sweep:
            sys.exit(str(error))  # the line is not there any more
        print(json.dumps({"error": str(error), "ended": True}), flush=True)
        return 1
    return 0


def _port(given: object) -> int:
    port = int(str(given))
    if not _FIRST_PORT <= port <= _LAST_PORT:
        raise InterceptionFailed(f"port {port} is not intercepted: only those from {_FIRST_PORT} to {_LAST_PORT} are")
    return port


def _caller() -> int:
    """The user at the other end of the line."""
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as line:
        _, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(user)


def serve(holder: HeldRules, orders: TextIO, answers: TextIO) -> int:
    known: Mapping[str, Callable[..., Json]] = {
        "open": holder.open,
        "say": holder.say,
        "count": holder.count,
        "cut": holder.cut,
        "disarm": holder.disarm,
        "close": holder.close,
    }
    for line in orders:
        try:
            order = read_json(object, line)
            if not isinstance(order, dict):
                raise ValueError("no object")
            answer = known[order.pop("do")](**order)
        except InterceptionFailed as error:
            answer = {"error": str(error)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            answer = {"error": f"order not understood: {error!r}"}
        print(json.dumps(answer), file=answers, flush=True)
    with suppress(InterceptionFailed):  # it was said to each order, and nobody listens any more
        while holder.close()["is_used"]:
            time.sleep(_LOOK_AGAIN_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
