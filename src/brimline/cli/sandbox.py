"""``brimline sandbox up``: a real Kafka cluster on small volumes, in the foreground, gone without a trace after."""

import argparse
import os
import selectors
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from brimline.cli.shared.exit_codes import ExitCode
from brimline.cli.shared.options import add_debug_and_version

if TYPE_CHECKING:
    from brimline.sandbox import Sandbox, SandboxSpec, SecuritySpec

_DESCRIPTION = """\
Run a real Kafka cluster on small bounded volumes until ctrl-C, SIGTERM or the command `quit`. It
removes everything it made when it ends. It reads commands from its input: `help` lists them. Where the kernel refuses
private mounts (or with BRIMLINE_SANDBOX_PLAIN=1) volumes are plain, unbounded folders."""
_EPILOG = """\
exit codes:
  0    ended by quit, ctrl-C or SIGTERM, after it was ready
  1    the cluster could not be started, or was killed
  130  interrupted before it was ready"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``sandbox`` with its one action, ``up``."""
    sandbox = subparsers.add_parser("sandbox", help="run a real Kafka cluster on small volumes")
    actions = sandbox.add_subparsers(dest="action", required=True, metavar="up")
    up = actions.add_parser(
        "up",
        help="start a cluster and keep it until ctrl-C",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    up.add_argument("--kafka-version", default="4.3.1", metavar="VERSION", help="of Kafka (default: %(default)s)")
    up.add_argument("--brokers", type=int, default=1, metavar="N", help="number of brokers (default: 1)")
    up.add_argument("--volume", type=_size, default="256MB", metavar="SIZE", help="size of a volume (default: 256MB)")
    up.add_argument("--log-dirs", type=int, default=1, metavar="N", help="log dirs of a broker, each on its own volume")
    up.add_argument("--shared-volume", action="store_true", help="put a broker's log dirs on one volume")
    up.add_argument("--filesystem", choices=("tmpfs", "ext4"), default="tmpfs", help="ext4 needs root (default: tmpfs)")
    up.add_argument("--tiered", action="store_true", help="tiered storage, remote segments in a local directory")
    up.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="a broker property")
    _add_security(up)
    add_debug_and_version(up)
    up.set_defaults(func=run_up)


def _add_security(up: argparse.ArgumentParser) -> None:
    group = up.add_argument_group("security of the client listener")
    group.add_argument("--protocol", choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), default="PLAINTEXT")
    group.add_argument("--mechanism", action="append", default=[], choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
    group.add_argument("--user", action="append", default=[], metavar="NAME:PASSWORD")
    group.add_argument("--super-user", action="append", default=[], metavar="NAME")
    group.add_argument("--acls", action="store_true", help="deny everything without an ACL")
    group.add_argument("--mutual-tls", action="store_true", help="ask clients for a certificate")


def run_up(arguments: argparse.Namespace) -> int:
    """Start, tell, obey; returns the exit code. Once it is ready ctrl-C is the usual end, and no interruption."""
    from brimline.sandbox import Sandbox

    spec = spec_of(arguments)
    ready = False
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _tell(f"starting Kafka {spec.version}: {_shape(arguments)} …")
        began = time.monotonic()
        with Sandbox(spec, report=lambda step: _tell(f"  {step}")) as sandbox:
            ready = True
            _tell(f"ready after {time.monotonic() - began:.1f} s\n\n{introduction(sandbox)}")
            _converse(sandbox)
    except KeyboardInterrupt:
        _tell("\nsandbox removed")
        return ExitCode.DONE if ready else ExitCode.INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, previous)
    return ExitCode.DONE


def spec_of(arguments: argparse.Namespace) -> "SandboxSpec":
    """The cluster that the options describe."""
    from brimline.sandbox import SandboxSpec, VolumeSpec

    volumes, log_dirs = (1, arguments.log_dirs) if arguments.shared_volume else (arguments.log_dirs, 1)
    volume = VolumeSpec(size=arguments.volume, log_dirs=log_dirs, filesystem=arguments.filesystem)
    return SandboxSpec(
        version=arguments.kafka_version,
        brokers=arguments.brokers,
        volumes=(volume,) * volumes,
        tiered=arguments.tiered,
        short_paths=arguments.brokers == 1 and not arguments.shared_volume,
        security=_security_of(arguments),
        # Kafka does not know it. By default a guard would call every small volume full.
        properties={
            "disk.min.free.bytes": str(arguments.volume // 20),
            **dict(_pair(text, "=", "--property") for text in arguments.property),
        },
    )


def introduction(sandbox: "Sandbox") -> str:
    """Where the cluster is, and what to try next."""
    servers = sandbox.bootstrap_servers
    facts: list[tuple[str, object]] = [("bootstrap servers", servers)]
    security = sandbox.spec.security
    if security:
        facts.append(("without security", sandbox.admin_servers))
    if security and security.uses_tls:
        facts.append(("CA certificate", sandbox.ca_pem))
    if security and security.mutual_tls:
        facts.append(("client certificate", sandbox.client_pem))
    for broker in sandbox.brokers:
        for number, path in enumerate(broker.log_dirs):
            facts.append((f"broker {broker.broker_id}, log dir {number}", sandbox.outside(path)))
        facts.append((f"broker {broker.broker_id}, --config", broker.node.server_properties))
    if sandbox.spec.tiered:
        facts.append(("remote segments", sandbox.outside(sandbox.tiered_dir)))
    remote = " --include-remote-info" if sandbox.spec.tiered else ""
    admin = sandbox.admin_servers if security else servers
    first = sandbox.brokers[0].node.server_properties
    widest = max(len(name) for name, _ in facts)
    lines = [
        *(f"{name:<{widest}}  {value}" for name, value in facts),
        "",
        "try in another terminal:",
        f"  brimline log-dirs --bootstrap-server {admin} --describe{remote}",
        f"  brimline topics --bootstrap-server {admin}{remote}",
        f"  {shlex.join(sandbox.inside(['brimline', 'doctor', '--config', str(first)]))}",
        "try here:",
        f"  {'fill 1 0 90%   unfill   ' * sandbox.has_real_volumes}stop 1   start 1   status   help   quit",
    ]
    return "\n".join(lines)


def _converse(sandbox: "Sandbox") -> None:
    from brimline.sandbox.console import Console
    from brimline.sandbox.errors import SandboxError, SandboxGone

    console = Console(sandbox)
    for line in _input_lines(sandbox.pid):
        if line.strip() == "quit":
            return
        if not line.strip():
            continue
        try:
            _tell(console.obey(line))
        except SandboxGone:
            raise
        except SandboxError as error:
            _tell(str(error))


def _input_lines(sandbox_pid: int) -> Iterator[str]:
    """Lines of our input. Without a terminal its end is not the end: only a signal is, or the sandbox's own."""
    from brimline.sandbox.errors import SandboxGone

    stdin = sys.stdin.fileno()
    sandbox_end = os.pidfd_open(sandbox_pid)
    pending = b""
    # poll, not epoll: the input may be a file or /dev/null
    with selectors.PollSelector() as selector:
        selector.register(sandbox_end, selectors.EVENT_READ)
        if not _is_background(stdin):
            selector.register(stdin, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if sandbox_end in ready:
                raise SandboxGone("the sandbox was killed")
            received = os.read(stdin, 4096)
            *lines, pending = (pending + received).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
            if not received and os.isatty(stdin):
                return
            if not received:
                selector.unregister(stdin)


def _is_background(stdin: int) -> bool:
    """Reading the terminal from the background would stop us."""
    return os.isatty(stdin) and os.tcgetpgrp(stdin) != os.getpgrp()


def _security_of(arguments: argparse.Namespace) -> "SecuritySpec | None":
    from brimline.sandbox import BadSpec, SecuritySpec

    if arguments.user and not arguments.protocol.startswith("SASL_"):
        raise BadSpec(
            f"--user has no effect with {arguments.protocol}, which asks for no password: "
            "add --protocol SASL_PLAINTEXT or SASL_SSL, and a --mechanism"
        )
    if arguments.super_user and arguments.protocol == "PLAINTEXT":
        raise BadSpec("--super-user has no effect with PLAINTEXT, where everyone is ANONYMOUS: add a --protocol")
    asked = arguments.mechanism or arguments.acls or arguments.mutual_tls
    if arguments.protocol == "PLAINTEXT" and not asked:
        return None
    return SecuritySpec(
        protocol=arguments.protocol,
        mechanisms=tuple(arguments.mechanism),
        users=dict(_pair(text, ":", "--user") for text in arguments.user),
        super_users=tuple(arguments.super_user),
        acls=arguments.acls,
        mutual_tls=arguments.mutual_tls,
    )


def _pair(text: str, separator: str, option: str) -> tuple[str, str]:
    from brimline.sandbox import BadSpec

    key, found, value = text.partition(separator)
    if not found:
        raise BadSpec(f"{option} {text}: write NAME{separator}VALUE")
    return key, value


def _shape(arguments: argparse.Namespace) -> str:
    from brimline.model import human_bytes

    where = "sharing a volume" if arguments.shared_volume else "each on a volume"
    brokers = f"{arguments.brokers} broker{'s' * (arguments.brokers != 1)}"
    log_dirs = f"{arguments.log_dirs} log dir{'s' * (arguments.log_dirs != 1)}"
    return f"{brokers} with {log_dirs}, {where} of {human_bytes(arguments.volume)}"


def _size(text: str) -> int:
    from brimline.model import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _tell(text: str) -> None:
    print(text, flush=True)
