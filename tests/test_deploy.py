"""What stands in ``deploy`` for containers agrees with the program and with itself."""

import re
from pathlib import Path

from brimline.settings import keys
from brimline.settings.config import load_config

DOCKER = Path(__file__).parent.parent / "deploy" / "docker"


def test_the_brokers_file_puts_its_clients_behind_the_gateway() -> None:
    config = load_config(DOCKER / "server.properties", {})

    assert config.is_enforcing
    assert config.warnings == ()
    (fronted,) = config.layout.fronted
    assert (fronted.name, str(fronted.bind), str(fronted.upstream)) == ("CLIENT", "*:9092", "127.0.0.1:19092")
    assert config.layout.problems == ()


def test_broker_and_guard_see_one_disk_under_one_path() -> None:
    compose = (DOCKER / "compose.yaml").read_text()
    (log_dir,) = load_config(DOCKER / "server.properties", {}).broker.log_dirs

    assert re.findall(r"kafka-data:(\S+)", compose) == [log_dir, f"{log_dir}:ro"]
    assert f"brimline-state:{keys.STATE_DIR.default}\n" in compose


def test_the_image_installs_what_is_locked() -> None:
    copied = re.findall(r"requirements/(\w+\.txt)", (DOCKER / "Dockerfile").read_text())

    assert [lock for lock in copied if not (DOCKER.parent.parent / "requirements" / lock).is_file()] == []
    assert copied
