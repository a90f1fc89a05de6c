"""What a gateway tells Brimline's own client comes out as it went in, and is refused when it is damaged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.model import Reason
from brimline.wire.describe_log_dirs_explained import (
    TAG,
    Explanation,
    LogDirExplanation,
    decode_explanation,
    decode_log_dir_explanation,
    encode_explanation,
    encode_log_dir_explanation,
    find_tag,
    with_tag,
)
from brimline.wire.primitives import WireError
from tests.wire.log_dirs_answers import tag_section

reasons = st.lists(st.tuples(st.sampled_from(Reason), st.sampled_from(Reason)), max_size=50)


def column(values: list[Reason]) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.array(values, dtype=np.uint8)


@given(skipped=st.integers(0, 2**31 - 1), notes=st.lists(st.text(max_size=30)).map(tuple))
def test_notes_and_skipped_records_arrive(skipped: int, notes: tuple[str, ...]) -> None:
    explanation = Explanation(skipped_records=skipped, notes=notes)

    assert decode_explanation(encode_explanation(explanation)) == explanation


@given(pairs=reasons, cordoned=st.none() | st.booleans())
def test_every_reason_arrives(pairs: list[tuple[Reason, Reason]], cordoned: bool | None) -> None:  # noqa: FBT001
    remote, only_local = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    explanation = LogDirExplanation(
        is_cordoned=cordoned, remote_size_reason=column(remote), only_local_size_reason=column(only_local)
    )

    decoded = decode_log_dir_explanation(encode_log_dir_explanation(explanation), len(pairs))

    assert decoded.is_cordoned is cordoned
    assert decoded.remote_size_reason.tolist() == remote
    assert decoded.only_local_size_reason.tolist() == only_local


def test_a_reason_of_a_newer_gateway_is_taken_for_no_answer() -> None:
    one_row = LogDirExplanation(
        is_cordoned=None,
        remote_size_reason=column([Reason.CHANGING]),
        only_local_size_reason=column([Reason.KNOWN]),
    )
    newer = encode_log_dir_explanation(one_row).replace(b"changing", b"new-word")

    decoded = decode_log_dir_explanation(newer, 1)

    assert decoded.remote_size_reason.tolist() == [Reason.NO_ANSWER]
    assert decoded.only_local_size_reason.tolist() == [Reason.KNOWN]


@given(data=st.binary(max_size=60), rows=st.integers(0, 5))
def test_garbage_is_refused_and_nothing_else(data: bytes, rows: int) -> None:
    for decode in (decode_explanation, lambda given_data: decode_log_dir_explanation(given_data, rows)):
        try:
            decode(data)
        except WireError:
            continue


def test_every_shortened_or_lengthened_explanation_is_refused() -> None:
    two_rows = LogDirExplanation(
        is_cordoned=True,
        remote_size_reason=column([Reason.KNOWN, Reason.NOT_TIERED]),
        only_local_size_reason=column([Reason.FOLLOWER, Reason.NOT_TIERED]),
    )
    whole = encode_log_dir_explanation(two_rows)

    for length in range(len(whole)):
        with pytest.raises(WireError):
            decode_log_dir_explanation(whole[:length], 2)
    with pytest.raises(WireError):
        decode_log_dir_explanation(whole + b"\0", 2)


def test_our_field_joins_those_that_are_there() -> None:
    section = tag_section((0, b"zero"), (9, b"nine"))

    assert with_tag(section, b"ours") == tag_section((0, b"zero"), (9, b"nine"), (TAG, b"ours"))
    found = find_tag(with_tag(section, b"ours"))
    assert found is not None
    assert bytes(found) == b"ours"
    assert find_tag(section) is None
