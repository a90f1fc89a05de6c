"""A connection's two streams, cut into pieces at will: what passes, what is collected, and in which order it leaves."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.wire.in_flight import Expected, InFlight, OwnAnswer
from brimline.wire.primitives import Malformed, WireError
from brimline.wire.request_stream import Request, RequestStream
from brimline.wire.response_stream import ResponseStream

LARGEST = 1 << 20
FETCH, WANTED, PRODUCE, SASL_HANDSHAKE = 1, 35, 0, 17


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


def request(api_key: int, correlation_id: int, body: bytes = b"", version: int = 1) -> bytes:
    return frame(
        api_key.to_bytes(2) + version.to_bytes(2) + correlation_id.to_bytes(4, signed=True) + b"\xff\xff" + body
    )


def produce_request(correlation_id: int, acks: int, records: bytes = b"") -> bytes:
    transactional_id = b"\xff\xff"
    return request(PRODUCE, correlation_id, transactional_id + acks.to_bytes(2, signed=True) + records, version=3)


def response(correlation_id: int, body: bytes = b"") -> bytes:
    return frame(correlation_id.to_bytes(4, signed=True) + body)


def cut(data: bytes, sizes: Sequence[int]) -> Iterator[memoryview]:
    """Pieces of these sizes, again and again; of none: frame by frame."""
    at = turn = 0
    while not sizes and at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4])
        yield memoryview(data[at:end])
        at = end
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield memoryview(data[at : at + size])
        at += size
        turn += 1


def wants(api_key: int, _version: int) -> bool:
    return api_key == WANTED


pieces = st.lists(st.integers(1, 40), max_size=6)
bodies = st.binary(max_size=60)


@given(
    frames=st.lists(st.tuples(st.sampled_from([FETCH, WANTED, PRODUCE]), bodies, st.sampled_from([0, 1, -1]))),
    sizes=pieces,
)
def test_requests_pass_in_order_and_wanted_ones_are_collected(
    frames: list[tuple[int, bytes, int]], sizes: list[int]
) -> None:
    in_flight = InFlight()
    stream = RequestStream(in_flight, LARGEST, wants)
    sent = [
        produce_request(number, acks, body) if key == PRODUCE else request(key, number, body)
        for number, (key, body, acks) in enumerate(frames)
    ]
    passed = b""
    collected = []
    for piece in cut(b"".join(sent), sizes):
        for item in [piece] if stream.pass_whole(piece) else stream.receive(piece):
            if isinstance(item, Request):
                collected.append(bytes(item.frame))
                assert b"".join(sent[: item.correlation_id + 1]).startswith(passed)
                passed += item.frame
            else:
                passed += item

    assert passed == b"".join(sent)
    assert collected == [each for each, (key, _, _) in zip(sent, frames, strict=True) if key == WANTED]
    assert len(in_flight) == sum(key == FETCH or (key == PRODUCE and acks != 0) for key, _, acks in frames)
    assert stream.is_between_frames
    assert stream.requests == len(frames)


@given(
    key=st.sampled_from([FETCH, WANTED, PRODUCE, SASL_HANDSHAKE, 36]),
    version=st.integers(-1, 14),
    body=bodies,
    lie=st.sampled_from([0, 0, 0, -1, 1, LARGEST]),
)
def test_what_passes_whole_is_what_would_have_passed(key: int, version: int, body: bytes, lie: int) -> None:
    sent = request(key, 7, body, version=version & 0xFFFF)
    sent = (len(sent) - 4 + lie).to_bytes(4) + sent[4:]
    fast, slow = (RequestStream(InFlight(), LARGEST, wants) for _ in range(2))

    if fast.pass_whole(memoryview(sent)):
        (passed,) = slow.receive(memoryview(sent))
        assert passed == memoryview(sent)
        assert list(slow._in_flight._places) == list(fast._in_flight._places)
    assert fast.is_between_frames
    assert (fast.requests, fast.produce_requests) in ((0, 0), (slow.requests, slow.produce_requests))


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    kinds = st.sampled_from(["plain", "looked-at", "own"])
    return draw(st.lists(st.tuples(kinds, bodies), max_size=12))


@given(conversation=conversations(), sizes=pieces)
def test_answers_leave_in_the_order_of_their_requests(conversation: list[tuple[str, bytes]], sizes: list[int]) -> None:
    in_flight = InFlight()
    stream = ResponseStream(in_flight)
    from_broker, wanted = b"", b""
    for number, (kind, body) in enumerate(conversation):
        if kind == "own":
            in_flight.add(OwnAnswer(frame(b"own" + body)))
            wanted += frame(b"own" + body)
            continue
        from_broker += response(number, body)
        if kind == "plain":
            in_flight.add(number)
            wanted += response(number, body)
        else:
            in_flight.add(Expected(number, lambda _expected, payload: frame(b"changed" + bytes(payload))))
            wanted += frame(b"changed" + number.to_bytes(4) + body)

    got = b"".join(in_flight.due())
    for piece in cut(from_broker, sizes):
        got += piece if stream.pass_whole(piece) else b"".join(stream.receive(piece))
    assert got == wanted
    assert not in_flight
    assert stream.is_between_frames


@given(sizes=pieces, body=bodies)
def test_an_answer_that_is_held_back_holds_back_what_follows(sizes: list[int], body: bytes) -> None:
    in_flight = InFlight()
    stream = ResponseStream(in_flight)
    own = OwnAnswer(None)
    in_flight.add(1)
    in_flight.add(own)
    in_flight.add(2)
    got = b""
    for piece in cut(response(1, body) + response(2, body), sizes):
        got += b"".join(stream.receive(piece))
    assert got == response(1, body)
    assert in_flight.is_held_back

    own.frame = b"own"
    assert b"".join(stream.resume()) == b"own" + response(2, body)
    assert not in_flight


@given(sizes=pieces)
def test_a_change_that_takes_a_while_holds_back_what_follows(sizes: list[int]) -> None:
    in_flight = InFlight()
    stream = ResponseStream(in_flight)
    slow = Expected(1, lambda _expected, _payload: None)
    in_flight.add(slow)
    in_flight.add(2)
    assert b"".join(b"".join(stream.receive(piece)) for piece in cut(response(1, b"x") + response(2), sizes)) == b""

    slow.frame = frame(b"changed")
    assert b"".join(stream.resume()) == frame(b"changed") + response(2)
    assert not in_flight


def test_large_frames_may_go_past() -> None:
    in_flight = InFlight()
    requests, responses = RequestStream(in_flight, LARGEST, wants), ResponseStream(in_flight)
    whole = request(FETCH, 7, b"x" * 1000)
    assert [bytes(item) for item in requests.receive(memoryview(whole[:100])) if not isinstance(item, Request)] == [
        whole[:100]
    ]
    requests.went_past(requests.passing)
    assert requests.is_between_frames

    in_flight.add(OwnAnswer(b"own"))
    answer = response(7, b"y" * 1000)
    assert b"".join(responses.receive(memoryview(answer[:50]))) == answer[:50]
    assert responses.went_past(900) == []
    assert responses.went_past(responses.passing) == [b"own"]


def test_raw_sasl_tokens_have_no_correlation_id() -> None:
    """SaslHandshake version 0 is followed by tokens without a header, the last of which may have no answer."""
    in_flight = InFlight()
    requests, responses = RequestStream(in_flight, LARGEST, wants), ResponseStream(in_flight)
    token = frame(b"\0user\0password")
    sent = request(SASL_HANDSHAKE, 1, version=0) + token + frame(b"") + request(FETCH, 2)
    for size in (1, 3, 1000):
        got = b""
        for piece in cut(sent, [size]):
            for item in requests.receive(piece):
                assert not isinstance(item, Request)
                got += item
        assert got == sent
        assert requests.is_between_frames
        answers = response(1) + frame(b"") + response(2, b"fetched")
        assert b"".join(b"".join(responses.receive(piece)) for piece in cut(answers, [size])) == answers
        assert not in_flight


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 7, LARGEST + 1, 2**31 - 1])
def test_absurd_lengths_of_requests_are_refused(length: int) -> None:
    stream = RequestStream(InFlight(), LARGEST, wants)
    head = length.to_bytes(4, signed=True) + b"\0\1\0\1\0\0\0\1" + b"rest"
    with pytest.raises(Malformed):
        list(stream.receive(memoryview(head)))


def test_a_produce_request_without_acks_is_refused() -> None:
    stream = RequestStream(InFlight(), LARGEST, wants)
    with pytest.raises(WireError):
        list(stream.receive(memoryview(request(PRODUCE, 1, b"\xff\xff", version=3))))


def test_a_negative_length_of_an_answer_is_refused() -> None:
    answer = b"\xff\xff\xff\xff\0\0\0\1"
    with pytest.raises(Malformed):
        list(ResponseStream(InFlight()).receive(memoryview(answer)))
    in_pieces = ResponseStream(InFlight())
    assert list(in_pieces.receive(memoryview(answer[:3]))) == []
    with pytest.raises(Malformed):
        list(in_pieces.receive(memoryview(answer[3:])))


def test_an_answer_that_was_not_asked_for_is_refused() -> None:
    in_flight = InFlight()
    in_flight.add(1)
    with pytest.raises(Malformed):
        list(ResponseStream(in_flight).receive(memoryview(response(2))))


@given(data=st.binary(max_size=300), sizes=pieces)
def test_garbage_raises_nothing_but_wire_errors(data: bytes, sizes: list[int]) -> None:
    requests = RequestStream(InFlight(), LARGEST, wants)
    responses = ResponseStream(InFlight())
    for stream in (requests, responses):
        try:
            for piece in cut(data, sizes):
                for _ in stream.receive(piece):
                    pass
        except WireError:
            continue
    assert requests.kept_bytes <= len(data)
