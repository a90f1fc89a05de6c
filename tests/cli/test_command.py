"""``brimline`` from arguments to exit code, with a cluster that answers from memory."""

import io
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import cast

import pytest

from brimline import __version__
from brimline.cli import describe, main
from brimline.cli.describe import Connect
from brimline.cli.exit_codes import ExitCode
from brimline.cli.parser import build_parser
from brimline.cli.progress import ProgressLine
from brimline.model import BrokerId, BrokerLogDirs, Failure, FailureKind, ObservationFailed
from brimline.observe.admin import DescribeLogDirsOptions, DescribeLogDirsResult
from brimline.observe.client_config import ClientConfig
from tests.cli.clusters import TIMED_OUT, broker, by_id, small_cluster


class ClusterInMemory:
    """Stands where ``Admin`` stands; remembers what it was asked."""

    def __init__(self, answers: Mapping[BrokerId, BrokerLogDirs], skipped_records: int = 0) -> None:
        self._answers = answers
        self._skipped_records = skipped_records
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
            brokers={number: self._answers[number] for number in asked}, skipped_records=self._skipped_records
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

    assert "brimline: warning: 1,234 records in __remote_log_metadata" in capsys.readouterr().err


def test_a_property_wins_over_the_file_and_an_unknown_one_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=from-file\nacks=all\nno.such.thing=1\n")
    cluster = ClusterInMemory(small_cluster())

    run(cluster, "--command-config", str(file), "--command-property", "client.id=from=option")

    assert cluster.config is not None
    assert cluster.config.client_id == "from=option"
    assert capsys.readouterr().err == (
        "brimline: warning: no Kafka client knows these properties, and they have no effect: no.such.thing\n"
    )


def test_no_colour_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    run(ClusterInMemory(small_cluster()), "--output", "table")

    assert "\x1b" not in capsys.readouterr().out


def command_that(act: Callable[[], int]) -> Callable[[object], int]:
    return lambda _args: act()


def run_main(monkeypatch: pytest.MonkeyPatch, act: Callable[[], int], *options: str) -> int:
    monkeypatch.setattr("brimline.cli.log_dirs.run", command_that(act))
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
        (["nonsense"], "invalid choice: 'nonsense'"),
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
        "sys.exit(','.join(name for name in ('kafka', 'numpy', 'rich', 'ssl') if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_closed_pipe_and_a_full_disk_end_quietly() -> None:
    script = "import sys; from tests.cli.test_command import *; sys.exit(write_much())"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "brimline: cannot write the output: No space left on device\n")

    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert (process.returncode, errors) == (ExitCode.PIPE_CLOSED, "")


def write_much() -> int:
    """Run in another process: a whole command whose output does not fit into a pipe's buffer unread."""
    import brimline.cli.log_dirs

    brimline.cli.log_dirs.run = lambda args: describe.describe(
        args, cast(Connect, ClusterInMemory(small_cluster()).connect)
    )
    return main(["log-dirs", "--bootstrap-server", "broker:9092"])


def test_progress_is_drawn_at_most_ten_times_a_second_and_cleared() -> None:
    terminal = io.StringIO()
    times = iter([0.0, 0.05, 0.2])
    line = ProgressLine(terminal, clock=lambda: next(times))

    line(0, 2000)
    line(500, 2000)
    line(1000, 2000)
    line.clear()

    assert terminal.getvalue() == (
        "\r\x1b[KReading __remote_log_metadata:   0 %, 0 of 2,000 records"
        "\r\x1b[KReading __remote_log_metadata:  50 %, 1,000 of 2,000 records"
        "\r\x1b[K"
    )
