"""References in a broker's file: Kafka's own providers are resolved, everybody else's are refused by name."""

from pathlib import Path

from brimline.observe.properties.config_providers import resolve_references
from brimline.observe.properties.java_properties import JavaProperties, parse_properties

PACKAGE = "org.apache.kafka.common.config.provider"


def resolved(text: str, **environment: str) -> tuple[JavaProperties, list[str]]:
    properties, problems = resolve_references(parse_properties(text.encode(), "server.properties"), environment)
    return properties, [str(problem) for problem in problems]


def declared(name: str, java_class: str, **parameters: str) -> str:
    lines = [f"config.providers={name}", f"config.providers.{name}.class={java_class}"]
    lines += [f"config.providers.{name}.param.{key.replace('_', '.')}={value}" for key, value in parameters.items()]
    return "\n".join(lines) + "\n"


def test_a_file(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("where=/data/a\n")

    properties, problems = resolved(
        declared("file", f"{PACKAGE}.FileConfigProvider") + f"log.dirs=${{file:{secrets}:where}},/b"
    )

    assert properties["log.dirs"] == "/data/a,/b"
    assert problems == []


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("7")

    properties, _ = resolved(declared("dir", f"{PACKAGE}.DirectoryConfigProvider") + f"node.id=${{dir:{tmp_path}:id}}")

    assert properties["node.id"] == "7"


def test_the_environment() -> None:
    properties, _ = resolved(declared("env", f"{PACKAGE}.EnvVarConfigProvider") + "node.id=${env:NODE}", NODE="7")

    assert properties["node.id"] == "7"


def test_a_variable_that_is_not_set_says_whose_environment_it_must_be_in() -> None:
    _, (problem,) = resolved(declared("env", f"{PACKAGE}.EnvVarConfigProvider") + "node.id=${env:NODE}")

    assert "line 3" in problem
    assert "NODE" in problem
    assert "guard's environment" in problem


def test_any_other_provider_is_refused_by_name() -> None:
    _, (problem,) = resolved(declared("vault", "com.example.Vault") + "node.id=${vault:x:y}")

    assert "'vault'" in problem
    assert "com.example.Vault" in problem


def test_an_undeclared_provider_is_left_alone_as_in_kafka() -> None:
    properties, problems = resolved("node.id=${file:/x:y}")

    assert properties["node.id"] == "${file:/x:y}"
    assert problems == []


def test_a_file_outside_the_allowed_paths_is_not_read(tmp_path: Path) -> None:
    _, (problem,) = resolved(
        declared("file", f"{PACKAGE}.FileConfigProvider", allowed_paths=f"{tmp_path}/in")
        + f"node.id=${{file:{tmp_path}/in/../out.properties:y}}"
    )

    assert "allowed.paths" in problem


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a=1\n")

    _, (problem,) = resolved(declared("file", f"{PACKAGE}.FileConfigProvider") + f"node.id=${{file:{tmp_path}/f:b}}")

    assert "'b'" in problem


def test_values_that_nobody_asks_for_are_not_resolved() -> None:
    text = declared("vault", "com.example.Vault") + "ssl.key.password=${vault:x:y}"

    _, problems = resolve_references(
        parse_properties(text.encode(), "server.properties"), {}, keys=lambda key: key == "node.id"
    )

    assert problems == []
