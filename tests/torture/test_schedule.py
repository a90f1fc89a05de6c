"""The schedule is the seed's: the same again, in whole and in part."""

from brimline.torture.faults.all_faults import BY_NAME, FAULTS
from brimline.torture.schedule import step_of

BROKERS = (1, 2, 3)
STEPS = range(1, 400)


def test_a_step_is_the_same_whatever_was_before() -> None:
    whole = [step_of(7, number, FAULTS, BROKERS, 2) for number in STEPS]

    assert step_of(7, 200, FAULTS, BROKERS, 2) == whole[199]
    assert whole == [step_of(7, number, FAULTS, BROKERS, 2) for number in STEPS]
    assert whole != [step_of(8, number, FAULTS, BROKERS, 2) for number in STEPS]


def test_every_fault_and_every_broker_gets_its_turn() -> None:
    strikes = [strike for number in STEPS for strike in step_of(7, number, FAULTS, BROKERS, 2).strikes]

    assert {strike.fault.name for strike in strikes} == set(BY_NAME)
    assert {strike.broker for strike in strikes} == set(BROKERS)
    assert {strike.volume for strike in strikes} == {0, 1}


def test_two_faults_at_once_touch_different_things() -> None:
    pairs = [step.strikes for number in STEPS if len((step := step_of(7, number, FAULTS, BROKERS, 2)).strikes) == 2]

    assert len(pairs) > 50
    assert not any(first.fault.touches & second.fault.touches for first, second in pairs)


def test_one_fault_alone_is_every_step() -> None:
    only = [BY_NAME["gateway-kill"]]

    assert {str(step_of(7, number, only, (1,), 2)) for number in STEPS} == {"gateway-kill of broker 1"}
