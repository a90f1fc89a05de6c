"""Notes of consumer groups on a real broker: written, read, too large, and what a principal lacks for either."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from brimline.model import Failure, ObservationFailed
from brimline.observe.client.connection import Connection, Deadline
from brimline.observe.cluster.group_notes import Note, read_notes, write_note
from brimline.sandbox import Sandbox
from tests.integration.kafka_clients import kafka_admin
from tests.integration.shared import shared, with_logins
from tests.integration.test_delete_records import as_guard, as_owner
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.integration

LONG = timedelta(seconds=PATIENCE_SECONDS)
GROUP, ANOTHER = "brimline-guard-1", "brimline-guard-2"


@pytest.fixture(scope="module", params=["4.3.1", pytest.param("3.9.2", marks=pytest.mark.long)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with shared(replace(with_logins(), version=request.param)) as running:
        yield running


def read(connection: Connection, group: str = GROUP) -> Note:
    return read_notes(connection, [group], Deadline(LONG))[group]


def written(connection: Connection, text: str = "a note", group: str = GROUP) -> str:
    """Why it was not; empty: it was."""
    try:
        write_note(connection, group, text, Deadline(LONG))
    except ObservationFailed as error:
        return str(error)
    return ""


def allow(sandbox: Sandbox, resource: ResourceType, name: str, operation: ACLOperation) -> None:
    rule = ACL("User:guard", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(resource, name))
    with kafka_admin(sandbox.admin_servers) as client:
        client.create_acls([rule])


def test_a_note_is_found_again_and_the_last_one_counts(sandbox: Sandbox) -> None:
    with closing(Connection(as_owner(sandbox))) as connection:
        before = read(connection, ANOTHER)
        said = [written(connection, text, ANOTHER) for text in ("x" * 4000, "the last", "x" * 4097)]

        assert before is None
        assert said == ["", "", "the coordinator answers OFFSET_METADATA_TOO_LARGE"]
        assert read(connection, ANOTHER) == "the last"


def test_every_right_that_is_missing_is_named(sandbox: Sandbox) -> None:
    with closing(Connection(as_guard(sandbox))) as connection:
        no_group = (str(read(connection)), written(connection))
        allow(sandbox, ResourceType.GROUP, GROUP, ACLOperation.READ)
        eventually(lambda: "the groups" not in written(connection))
        no_topic = (str(read(connection)), written(connection))
        allow(sandbox, ResourceType.TOPIC, "__consumer_offsets", ACLOperation.READ)
        eventually(lambda: not written(connection) and not isinstance(read(connection), Failure))

    for what, (reading, writing) in {
        "the groups brimline-guard-* (GROUP_AUTHORIZATION_FAILED)": no_group,
        "the topic __consumer_offsets (TOPIC_AUTHORIZATION_FAILED)": no_topic,
    }.items():
        assert reading == f"no permission: this principal needs DESCRIBE on {what}"
        assert writing == f"no permission: this principal needs READ on {what}"
