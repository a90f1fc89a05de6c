"""``brimline`` from arguments to exit code, with a cluster that answers from memory."""

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NoReturn, cast

import pytest

from brimline import __version__
from brimline.cli import main, sandbox
from brimline.cli.log_dirs import describe
from brimline.cli.log_dirs.describe import Connect, ProgressLine
from brimline.cli.parser import build_parser
from brimline.cli.shared.exit_codes import ExitCode
from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind, ObservationFailed
from brimline.observe.client.config import ClientConfig
from brimline.observe.cluster.admin import DescribeLogDirsOptions, DescribeLogDirsResult
from brimline.sandbox import BadSpec
from tests.cli.log_dirs.clusters import TIMED_OUT, broker, by_id, small_cluster


class ClusterInMemory:
    """Stands where ``Admin`` stands; remembers what it was asked."""

    def __init__(
        self, answers: Mapping[BrokerId, BrokerLogDirs], skipped_records: int = 0, notes: tuple[str, ...] = ()
    ) -> None:
        self._answers = answers
        self._skipped_records = skipped_records
        self._notes = notes
        self.asked: list[tuple[list[BrokerId], DescribeLogDirsOptions]] = []
        self.config: ClientConfig | None = None

    def connect(self, config: ClientConfig) -> "ClusterInMemory":
        self.config = config
        return self

    def __enter__(self) -> "ClusterInMemory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    @property
    def brokers(self) -> Mapping[BrokerId, str]:
        return {number: answer.address for number, answer in self._answers.items()}

    def describe_log_dirs(
        self,
        brokers: Iterable[BrokerId],
        options: DescribeLogDirsOptions,
        progress: Callable[[int, int], None] | None = None,
    ) -> DescribeLogDirsResult:
        asked = list(brokers)
        self.asked.append((asked, options))
        return DescribeLogDirsResult(
            brokers={number: self._answers[number] for number in asked},
            skipped_records=self._skipped_records,
            notes=self._notes,
        )


def run(cluster: ClusterInMemory, *options: str) -> int:
    argv = ["log-dirs", "--bootstrap-server", "broker:9092", *options]
    args = build_parser(argv).parse_args(argv)
    return describe.describe(args, cast(Connect, cluster.connect))


def test_in_a_pipe_the_output_is_the_stock_tool_s_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(ClusterInMemory(small_cluster()), "--describe")

    lines = capsys.readouterr().out.splitlines()
    assert code == ExitCode.DONE
    assert lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1,2",
    ]
    assert lines[2].startswith('{"brokers":[{"broker":1,')
    assert len(lines) == 3


def test_an_unknown_broker_is_refused_in_the_stock_tool_s_words(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ClusterInMemory(by_id(small_cluster()[BrokerId(1)]))

    code = run(cluster, "--broker-list", "2,0,1,2")

    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert captured.err == (
        "ERROR: The given brokers do not exist from --broker-list: 0,2. Current existent brokers: 1\n"
    )
    assert cluster.asked == []


def test_brokers_and_topics_are_passed_on_once_each() -> None:
    cluster = ClusterInMemory(small_cluster())

    run(cluster, "--broker-list", "2,2", "--topic-list", "orders,,orders", "--include-remote-info", "--timeout", "1.5")

    [(brokers, options)] = cluster.asked
    assert brokers == [2]
    assert (options.topics, options.include_remote_info) == (frozenset({"orders"}), True)
    assert options.timeout.total_seconds() == 1.5


def test_kafka_json_is_never_partial(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(ClusterInMemory(small_cluster() | by_id(broker(3, failure=TIMED_OUT))))

    captured = capsys.readouterr()
    assert code == ExitCode.FAILED
    assert captured.out == "Querying brokers for log directories information\n"
    assert captured.err == f"brimline: {TIMED_OUT.message}\n"


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_other_outputs_show_what_is_known_and_name_the_failure(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(ClusterInMemory(small_cluster() | by_id(broker(3, failure=TIMED_OUT))), "--output", output)

    shown = capsys.readouterr().out
    assert code == ExitCode.PARTIAL
    assert "/data/b" in shown
    assert TIMED_OUT.message in shown


def test_no_answer_at_all_is_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ClusterInMemory(by_id(broker(3, failure=TIMED_OUT))), "--output", "csv") == ExitCode.FAILED
    assert "timed-out" in capsys.readouterr().out


def test_skipped_records_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    run(ClusterInMemory(small_cluster(), skipped_records=1234), "--include-remote-info")

    assert "in __remote_log_metadata (1,234 records)" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["table", "json", "csv", "kafka-json"])
def test_what_could_not_be_read_is_said_beside_every_output(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ClusterInMemory(small_cluster(), notes=("remote log metadata could not be read: gone", "and more"))

    code = run(cluster, "--include-remote-info", "--output", output)

    assert code == ExitCode.DONE
    assert capsys.readouterr().err == "brimline: remote log metadata could not be read: gone\nbrimline: and more\n"


def test_a_property_wins_over_the_file_and_an_unknown_one_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=from-file\nacks=all\nno.such.thing=1\n")
    cluster = ClusterInMemory(small_cluster())

    run(cluster, "--command-config", str(file), "--command-property", "client.id=from=option")

    assert cluster.config is not None
    assert cluster.config.client_id == "from=option"
    assert capsys.readouterr().err == ("brimline: warning: unknown to Kafka clients, no effect: no.such.thing\n")


def test_no_colour_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    run(ClusterInMemory(small_cluster()), "--output", "table")

    assert "\x1b" not in capsys.readouterr().out


def command_that(act: Callable[[], int]) -> Callable[[object], int]:
    return lambda _args: act()


def run_main(monkeypatch: pytest.MonkeyPatch, act: Callable[[], int], *options: str) -> int:
    monkeypatch.setattr("brimline.cli.log_dirs.command.run", command_that(act))
    return main(["log-dirs", "--bootstrap-server", "broker:9092", *options])


def refuse() -> int:
    raise ObservationFailed(Failure(kind=FailureKind.UNREACHABLE, message="broker:9092 refused the connection"))


def interrupt() -> int:
    raise KeyboardInterrupt


def test_an_expected_error_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(monkeypatch, refuse) == ExitCode.FAILED
    assert capsys.readouterr().err == "brimline: broker:9092 refused the connection\n"


def test_debugging_shows_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIMLINE_DEBUG", "1")
    with pytest.raises(ObservationFailed):
        run_main(monkeypatch, refuse)


def test_an_interrupt_leaves_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(monkeypatch, interrupt) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["log-dirs"], "the following arguments are required: --bootstrap-server"),
        (["log-dirs", "--bootstrap-server", "a:1", "--broker-list", "1,x"], "'x' is not a broker id"),
        (["log-dirs", "--bootstrap-server", "a:1", "--timeout", "nan"], "'nan' is not a number of seconds above 0"),
        (["log-dirs", "--bootstrap-server", "a:1", "--top", "-1"], "'-1' is not a number of replicas"),
        (["log-dirs", "--bootstrap-server", "a:1", "--output", "xml"], "invalid choice: 'xml'"),
        (["log-dirs", "--bootstrap-server", "a:1", "--command-property", "x"], "'x' is not key=value"),
        (["log-dirs", "--bootstrap-server", "a"], "'a' is not host:port"),
        (["log-dirs", "--bootstrap-server", "a:1", "--command-config", "/no/such"], "No such file or directory"),
        (
            ["log-dirs", "--bootstrap-server", "a:1", "--topic-list", ",", "--topic-list", "b"],
            "--topic-list: given more",
        ),
        (
            ["log-dirs", "--bootstrap-server", "a:1", "--broker-list", "1", "--broker-list=2"],
            "--broker-list: given more",
        ),
        (["log-dirs", "--bootstrap-server", "a:1", "--bootstrap-server", "a:1"], "--bootstrap-server: given more"),
        (
            ["log-dirs", "--bootstrap-server", "a:1", "--command-config", "a", "--command-config", "b"],
            "--command-config: given more than once\n",
        ),
        (["log-dirs", "--bootstrap", "a:1"], "the following arguments are required: --bootstrap-server"),
        (["sandbox", "up", "--vers", "0.1"], "unrecognized arguments: --vers 0.1"),
        (["--vers"], "unrecognized arguments: --vers"),
        (["nonsense"], "there is no 'nonsense'; choose from 'doctor'"),
        (["staus"], "there is no 'staus'; did you mean 'status'?"),
        ([], "usage: brimline"),
    ],
)
def test_wrong_usage_is_said_on_stderr_with_exit_code_1(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == ExitCode.FAILED

    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_versions_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == main(["log-dirs", "--version"]) == 0
    assert capsys.readouterr().out == f"brimline {__version__}\n" * 2
    assert main(["log-dirs", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    for code in ExitCode:
        assert f"\n  {code.value} " in shown


def test_help_needs_neither_the_client_library_nor_numpy() -> None:
    script = (
        "import sys; from brimline.cli import main; main(['--help']); main(['log-dirs', '--help']);"
        "main(['sandbox', 'up', '--help']);"
        "sys.exit(','.join(name for name in ('kafka', 'numpy', 'rich', 'ssl') if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


IN_ANOTHER_PROCESS = (
    "import sys; from tests.cli.log_dirs.test_command import *; sys.exit(a_whole_command(*sys.argv[1:]))"
)


def a_whole_command(*options: str) -> int:
    """Run in another process, whose streams can be closed; it has something to say on each of them."""
    import brimline.cli.log_dirs.command

    cluster = ClusterInMemory(small_cluster(), skipped_records=1)
    brimline.cli.log_dirs.command.run = lambda args: describe.describe(args, cast(Connect, cluster.connect))
    return main(["log-dirs", "--bootstrap-server", "broker:9092", *options])


def run_with(redirection: str, *options: str) -> "subprocess.CompletedProcess[str]":
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", IN_ANOTHER_PROCESS, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("output", ["table", "kafka-json"])
def test_a_full_disk_is_one_sentence(output: str) -> None:
    done = run_with(">/dev/full", "--output", output)

    assert done.returncode == ExitCode.FAILED
    assert done.stderr.endswith("brimline: cannot write the output: No space left on device\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("output", ["table", "kafka-json"])
def test_a_reader_that_goes_away_ends_it_quietly(output: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, "--all", "--output", output],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()

    assert process.returncode == ExitCode.PIPE_CLOSED
    assert [
        line for line in errors.splitlines() if not line.startswith("brimline: warning: unreadable records skipped")
    ] == []


@pytest.mark.parametrize("output", ["table", "kafka-json"])
def test_a_closed_output_is_nobody_s_failure(output: str) -> None:
    done = run_with(">&-", "--output", output)

    assert (done.returncode, done.stdout) == (ExitCode.DONE, "")
    assert done.stderr.startswith("brimline: warning: unreadable records skipped")
    assert len(done.stderr.splitlines()) == 1


def test_what_is_for_a_closed_stderr_does_not_go_to_the_output() -> None:
    done = run_with("2>&-")
    refused = run_with("2>&-", "--broker-list", "7")

    assert (done.returncode, len(done.stdout.splitlines())) == (ExitCode.DONE, 3)
    assert (refused.returncode, refused.stdout) == (ExitCode.FAILED, "")


def test_all_streams_may_be_closed() -> None:
    assert run_with("<&- >&- 2>&-").returncode == ExitCode.DONE


@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("argparse", ["log-dirs", "--bootstrap-server", "a:1"]),
        ("brimline.cli.log_dirs.command", ["log-dirs", "--bootstrap-server", "a:1"]),
        ("brimline.model", ["log-dirs", "--bootstrap-server", "a:1"]),
        ("kafka", ["log-dirs", "--bootstrap-server", "a:1"]),
        ("numpy", ["sandbox", "up"]),
        ("brimline.sandbox", ["sandbox", "up"]),
    ],
)
def test_an_interrupt_during_an_import_leaves_quietly(module: str, argv: list[str]) -> None:
    script = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from brimline.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )

    done = subprocess.run([sys.executable, "-c", script, *argv], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "")


class InterruptedSandbox:
    """Interrupted before it is ready."""

    def __init__(self, spec: object, report: object) -> None:
        pass

    def __enter__(self) -> NoReturn:
        raise KeyboardInterrupt

    def __exit__(self, *_error: object) -> None:
        return None


def test_a_sandbox_that_is_interrupted_before_it_is_ready_was_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("brimline.sandbox.Sandbox", InterruptedSandbox)

    assert main(["sandbox", "up"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--user", "a:b"], "--user has no effect with PLAINTEXT, which asks for no password: add --protocol"),
        (["--user", "a:b", "--protocol", "SSL"], "--user has no effect with SSL"),
        (["--super-user", "a"], "--super-user has no effect with PLAINTEXT"),
        (["--acls"], "ACLs need SASL or mutual TLS"),
        (["--mutual-tls"], "PLAINTEXT has no TLS"),
        (["--mechanism", "PLAIN"], "PLAINTEXT and mechanisms"),
    ],
)
def test_a_sandbox_that_would_not_be_protected_as_asked_is_refused(options: list[str], sentence: str) -> None:
    argv = ["sandbox", "up", *options]

    with pytest.raises(BadSpec, match=re.escape(sentence)):
        sandbox.spec_of(build_parser(argv).parse_args(argv))


def test_progress_is_drawn_at_most_ten_times_a_second_and_cleared() -> None:
    terminal = io.StringIO()
    times = iter([0.0, 0.05, 0.2])
    line = ProgressLine(terminal, 80, clock=lambda: next(times))

    line(0, 2000)
    line(500, 2000)
    line(1000, 2000)
    line.clear()

    assert terminal.getvalue() == (
        "\r\x1b[KReading __remote_log_metadata:   0 %, 0 of 2,000 records"
        "\r\x1b[KReading __remote_log_metadata:  50 %, 1,000 of 2,000 records"
        "\r\x1b[K"
    )


def test_progress_stays_on_one_line_of_a_narrow_terminal() -> None:
    terminal = io.StringIO()

    ProgressLine(terminal, 40)(5, 10)

    assert terminal.getvalue() == "\r\x1b[KReading __remote_log_metadata:  50 %, 5"
