"""In processes of their own: what is imported here would already be imported."""

import subprocess
import sys

import pytest


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_describing_a_cluster_imports_no_client() -> None:
    loaded = run(
        "import sys, brimline.observe.cluster.admin; print([m for m in sys.modules if m.startswith('kafka.')])"
    )

    assert "kafka.net.manager" in loaded
    assert "kafka.producer" not in loaded
    assert "kafka.consumer.group" not in loaded


@pytest.mark.parametrize(
    "script",
    [
        "from kafka import KafkaConsumer; print(KafkaConsumer.__name__)",
        "import kafka; print(kafka.KafkaConsumer.__name__)",
        "import kafka.consumer; print(kafka.consumer.KafkaConsumer.__name__)",
        "from kafka import *; print(KafkaConsumer.__name__)",
    ],
)
@pytest.mark.parametrize("before", ["import brimline.observe.cluster.admin\n", ""], ids=["after ours", "alone"])
def test_others_in_the_process_see_the_whole_package(before: str, script: str) -> None:
    assert run(before + script) == "KafkaConsumer"


def test_a_name_that_is_not_there_is_missing_as_ever() -> None:
    said = run("import brimline.observe, kafka\ntry: kafka.NoSuchThing\nexcept AttributeError as error: print(error)")

    assert said == "module 'kafka' has no attribute 'NoSuchThing'"


def test_a_package_that_is_there_already_is_left_alone() -> None:
    said = run("import kafka; before = kafka; import brimline.observe; print(kafka is before, type(kafka).__name__)")

    assert said == "True module"
