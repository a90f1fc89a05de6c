import pytest

from brimline.decide.followers import AUTO, FollowerAction, choose_action

SKIP, FENCE, RESERVE = FollowerAction.SKIP, FollowerAction.FENCE, FollowerAction.RESERVE


@pytest.mark.parametrize(
    ("wish", "carries_replication", "carries_clients", "action", "is_possible"),
    [
        (AUTO, True, True, SKIP, True),
        (AUTO, False, True, RESERVE, True),
        (AUTO, False, False, RESERVE, False),
        ("skip", True, True, SKIP, True),
        ("skip", False, True, SKIP, False),
        ("reserve", True, True, RESERVE, True),
        ("fence", True, True, FENCE, True),
        ("fence", False, False, FENCE, False),
    ],
)
def test_what_is_named_is_done_and_auto_goes_by_the_layout(
    wish: str, *, carries_replication: bool, carries_clients: bool, action: FollowerAction, is_possible: bool
) -> None:
    choice = choose_action(wish, carries_replication=carries_replication, carries_clients=carries_clients)

    assert (choice.action, choice.obstacle is None) == (action, is_possible)
    assert ("brimline.follower.action says so" in choice.why) is (wish != AUTO)


def test_with_interception_a_full_broker_skips_itself_and_leaders_keep_a_reserve() -> None:
    for wish in (AUTO, "skip"):
        choice = choose_action(wish, carries_replication=False, carries_clients=True, skips_itself=True)
        assert (choice.action, choice.obstacle) == (FollowerAction.RESERVE, None)
    fence = choose_action("fence", carries_replication=False, carries_clients=True, skips_itself=True)
    assert fence.action is FollowerAction.FENCE
