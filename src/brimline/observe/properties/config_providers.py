"""``${provider:path:key}`` in a broker's properties, resolved as Kafka's own config providers resolve it.

Kafka ships three providers that need nothing but this machine: files, directories of files, and the environment. Those
are resolved here. Any other class is code that only the broker can run, so a value that needs it is refused by name;
and a reference to a name that ``config.providers`` does not declare stays what it is, as in Kafka.

Kafka's ``allowed.paths`` and ``allowlist.pattern`` parameters are honoured: what the broker may not read, the guard
does not read either.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from brimline.model.failures import BadInput
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry, load_properties

_REFERENCE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")  # Kafka's own pattern
_PACKAGE = "org.apache.kafka.common.config.provider."


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A declared provider: its name in references, its class, and its parameters."""

    name: str
    java_class: str
    parameters: Mapping[str, str]


def resolve_references(
    properties: JavaProperties, environment: Mapping[str, str], *, keys: Callable[[str], bool] = lambda _: True
) -> tuple[JavaProperties, list[BadInput]]:
    """The properties with their references replaced, and what could not be.

    Only values of ``keys`` are looked at: a secret that the guard does not need is none of its business.
    """
    providers = _declared(properties)
    problems: list[BadInput] = []
    resolved = []
    for entry in properties.entries:
        try:
            resolved.append(_resolved(entry, providers, environment) if keys(entry.key) else entry)
        except BadInput as problem:
            problems.append(problem)
    return JavaProperties(resolved), problems


def _declared(properties: JavaProperties) -> dict[str, Provider]:
    names = [name.strip() for name in properties.get("config.providers", "").split(",") if name.strip()]
    providers = {}
    for name in names:
        prefix = f"config.providers.{name}.param."
        parameters = {key.removeprefix(prefix): properties[key] for key in properties if key.startswith(prefix)}
        java_class = properties.get(f"config.providers.{name}.class", "").strip()
        providers[name] = Provider(name=name, java_class=java_class, parameters=parameters)
    return providers


def _resolved(entry: PropertyEntry, providers: Mapping[str, Provider], environment: Mapping[str, str]) -> PropertyEntry:
    value = entry.value
    for reference in list(_REFERENCE.finditer(value)):
        provider = providers.get(reference[1])
        if provider is not None:
            found = _value(provider, reference[3] or "", reference[4], entry, environment)
            value = value.replace(reference[0], found)
    return entry if value is entry.value else replace(entry, value=value)


def _value(provider: Provider, path: str, key: str, entry: PropertyEntry, environment: Mapping[str, str]) -> str:
    kind = provider.java_class.removeprefix(_PACKAGE)
    if kind == "FileConfigProvider":
        return _from_file(provider, path, key, entry)
    if kind == "DirectoryConfigProvider":
        return _from_directory(provider, path, key, entry)
    if kind == "EnvVarConfigProvider":
        return _from_environment(provider, key, entry, environment)
    named = f"the class {provider.java_class}" if provider.java_class else "no class"
    raise BadInput(
        f"{entry.where}: {entry.key} needs the config provider {provider.name!r}, which is {named}: only Kafka's own "
        f"FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider can be resolved outside the broker"
    )


def _from_file(provider: Provider, path: str, key: str, entry: PropertyEntry) -> str:
    _refuse_if_not_allowed(provider, path, entry)
    values = load_properties(path)
    if key not in values:
        raise BadInput(f"{entry.where}: {entry.key}: the file {path} has no key {key!r}")
    return values[key]


def _from_directory(provider: Provider, path: str, key: str, entry: PropertyEntry) -> str:
    _refuse_if_not_allowed(provider, path, entry)
    try:
        return Path(path, key).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise BadInput(f"{entry.where}: {entry.key}: cannot read {Path(path, key)}: {failure}") from failure


def _from_environment(provider: Provider, key: str, entry: PropertyEntry, environment: Mapping[str, str]) -> str:
    pattern = provider.parameters.get("allowlist.pattern")
    if key not in environment or (pattern and not re.fullmatch(pattern, key)):
        raise BadInput(
            f"{entry.where}: {entry.key}: the environment variable {key} is not set in the guard's environment"
        )
    return environment[key]


def _refuse_if_not_allowed(provider: Provider, path: str, entry: PropertyEntry) -> None:
    allowed = list(_allowed_paths(provider))
    wanted = Path(os.path.normpath(path))
    if allowed and not any(wanted.is_relative_to(folder) for folder in allowed):
        raise BadInput(f"{entry.where}: {entry.key}: {path} is outside allowed.paths of provider {provider.name!r}")


def _allowed_paths(provider: Provider) -> Iterator[Path]:
    for path in provider.parameters.get("allowed.paths", "").split(","):
        if path.strip():
            yield Path(os.path.normpath(path.strip()))
