"""What to ask the registry for to get a Kafka of each version; read only when the lock file is made.

A broker's own module brings nearly everything. Added to it: the command-line tools (alone: their POM drags in
Connect), the test jars with LocalTieredStorage where tiered storage exists, and the logging binding that Kafka's
distribution adds and its POMs leave out: log4j 2 since 4.0, reload4j before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from brimline.sandbox.ivy import dependency
from brimline.sandbox.lock import Coordinates

_KAFKA = "org.apache.kafka"


@dataclass(frozen=True, slots=True)
class Recipe:
    logging: tuple[Coordinates, ...]
    """The binding must be of the log4j version that the broker's POM brings."""
    tiered: bool = True


def _log4j(revision: str) -> tuple[Coordinates, ...]:
    return (Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", revision),)


_RELOAD4J = (Coordinates("org.slf4j", "slf4j-reload4j", "1.7.36"), Coordinates("ch.qos.reload4j", "reload4j", "1.2.25"))

RECIPES = {
    "3.2.3": Recipe(_RELOAD4J, tiered=False),
    "3.9.2": Recipe(_RELOAD4J),
    "4.1.2": Recipe(_log4j("2.25.3")),
    "4.3.1": Recipe(_log4j("2.25.4")),
}


def dependencies_of(version: str) -> Iterator[str]:
    recipe = RECIPES[version]
    yield dependency(Coordinates(_KAFKA, "kafka_2.13", version), transitive=True)
    yield dependency(Coordinates(_KAFKA, "kafka-tools", version), transitive=False)
    if recipe.tiered:
        for artifact in ("kafka-storage", "kafka-clients"):
            yield dependency(Coordinates(_KAFKA, artifact, version), transitive=True, classifiers=("", "test"))
    for binding in recipe.logging:
        yield dependency(binding, transitive=False)
