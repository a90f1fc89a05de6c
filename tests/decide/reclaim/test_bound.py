import pytest

from brimline.decide.disk_state import DiskLimits
from brimline.decide.reclaim.bounds import ReclaimDelays, most_above_ceiling, room_below_fence
from brimline.model import Bytes
from brimline.model.reclaim import DeviceFacts, ReclaimPolicy

DELAYS = ReclaimDelays(cycle=1, retention_check=300, delete_delay=60)
FENCE_AT_90 = DiskLimits(max_used_percent=90, min_free_bytes=Bytes(0))


def device(ceiling: int, total: int | None = 1000) -> DeviceFacts:
    size = None if total is None else Bytes(total)
    policy = ReclaimPolicy(ceiling_percent=ceiling)
    return DeviceFacts(name="sda", total_bytes=size, usable_bytes=Bytes(0), now_ms=0, policy=policy)


def test_the_bound_is_active_segments_and_what_is_written_until_space_is_back() -> None:
    assert most_above_ceiling(Bytes(50), 2.5, DELAYS) == 50 + 903


def test_chance_survey_and_the_pace_of_trims_are_part_of_the_bound() -> None:
    delays = ReclaimDelays(cycle=1, jitter=0.25, survey=2, trims=3.75, retention_check=300, delete_delay=60)

    assert delays.total == 367
    assert most_above_ceiling(Bytes(50), 1.0, delays) == 50 + 367


def test_a_falling_rate_does_not_lower_the_bound() -> None:
    assert most_above_ceiling(Bytes(50), -10.0, DELAYS) == 50


@pytest.mark.parametrize(("above", "room"), [(0, 100), (99, 1), (100, 0), (101, -1), (5000, -4900)])
def test_room_between_ceiling_and_fence(above: int, room: int) -> None:
    assert room_below_fence(device(80), Bytes(above), FENCE_AT_90) == room


@pytest.mark.parametrize(
    ("facts", "limits"),
    [
        pytest.param(device(100), FENCE_AT_90, id="no ceiling"),
        pytest.param(device(80), DiskLimits(max_used_percent=100, min_free_bytes=Bytes(0)), id="no fence"),
        pytest.param(device(80, total=None), FENCE_AT_90, id="size not known"),
    ],
)
def test_no_room_to_speak_of(facts: DeviceFacts, limits: DiskLimits) -> None:
    assert room_below_fence(facts, Bytes(1), limits) is None
