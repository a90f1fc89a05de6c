"""Where ``brimline status`` looks for a guard, and how every command finds the broker's file."""

from pathlib import Path

import pytest

from brimline.cli.parser import build_parser
from brimline.cli.status.command import DEFAULT_URL, guard_url
from tests.guard.files import BROKER


def url(*options: str) -> str:
    argv = ["status", *options]
    return guard_url(build_parser(argv).parse_args(argv))


@pytest.fixture(autouse=True)
def _no_file_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIMLINE_CONFIG", raising=False)


def written(folder: Path, *lines: str) -> str:
    path = folder / "server.properties"
    path.write_text(BROKER + "".join(f"{line}\n" for line in lines))
    return str(path)


def test_without_a_word_it_is_the_default_port() -> None:
    assert url() == DEFAULT_URL


def test_a_properties_file_tells_the_address(tmp_path: Path) -> None:
    path = written(tmp_path, "brimline.metrics.host=0.0.0.0", "brimline.metrics.port=9999")

    assert url("--config", path) == "http://127.0.0.1:9999"
    assert url("--config", path, "--url", "http://there:1") == "http://there:1"


def test_the_environment_names_the_file_for_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "brimline.metrics.port=9999")
    monkeypatch.setenv("BRIMLINE_CONFIG", path)

    assert url() == "http://127.0.0.1:9999"
    for command in ("doctor", "guard", "gateway", "reclaim", "ledger", "fence", "unfence", "topics", "history"):
        needed = ["--topic", "t", "--reason", "r"] * ("fence" in command)
        args, _ = build_parser([command]).parse_known_args([command, *needed])
        assert args.config == path
