from dataclasses import replace
from uuid import UUID

import pytest

from brimline.decide.reclaim.tables import BrokerView, FolderView, compare_views
from brimline.model import Bytes, Offset
from brimline.model.reclaim import Views

TOPIC, OTHER = UUID(int=1), UUID(int=2)
FOLDER = FolderView(is_read=True, topic_id=TOPIC, first_base_offset=Offset(100), closed_bytes=Bytes(5000))
BROKER = BrokerView(size=Bytes(5000), topic_id=TOPIC, log_start_offset=Offset(100), high_watermark=Offset(900))


@pytest.mark.parametrize(
    ("folder", "broker", "expected"),
    [
        pytest.param(FOLDER, BROKER, Views.AGREE, id="the same"),
        pytest.param(FOLDER, replace(BROKER, size=Bytes(9000)), Views.AGREE, id="appended to since the scan"),
        pytest.param(FOLDER, replace(BROKER, log_start_offset=Offset(500)), Views.AGREE, id="trimmed since"),
        pytest.param(
            replace(FOLDER, first_base_offset=None), BROKER, Views.AGREE, id="a folder that has no segment yet"
        ),
        pytest.param(
            FOLDER, replace(BROKER, log_start_offset=Offset(0)), Views.AGREE, id="a follower ahead in retention"
        ),
        pytest.param(FOLDER, replace(BROKER, is_forbidden=True), Views.NO_PERMISSION, id="not ours to trim"),
        pytest.param(replace(FOLDER, is_read=False), BROKER, Views.NOT_READABLE, id="not readable"),
        pytest.param(FOLDER, None, Views.NOT_DESCRIBED, id="not described"),
        pytest.param(replace(FOLDER, topic_id=None), BROKER, Views.TOPIC_ID_UNKNOWN, id="no topic id on disk"),
        pytest.param(FOLDER, replace(BROKER, topic_id=None), Views.TOPIC_ID_UNKNOWN, id="no topic id from the broker"),
        pytest.param(FOLDER, replace(BROKER, topic_id=OTHER), Views.OTHER_TOPIC_ID, id="made anew"),
        pytest.param(FOLDER, replace(BROKER, size=Bytes(4999)), Views.SEGMENTS_MISSING, id="deleted from since"),
        pytest.param(
            FOLDER,
            replace(BROKER, log_start_offset=Offset(0), high_watermark=Offset(99)),
            Views.OTHER_OFFSETS,
            id="a watermark below the files",
        ),
        pytest.param(FOLDER, replace(BROKER, log_start_offset=Offset(901)), Views.OTHER_OFFSETS, id="a start above it"),
        pytest.param(FOLDER, replace(BROKER, high_watermark=None), Views.AGREE, id="unknown does not contradict"),
    ],
)
def test_the_two_views(folder: FolderView, broker: BrokerView | None, expected: Views) -> None:
    assert compare_views(folder, broker) is expected
