import struct

from brimline.sandbox.broker import brokers_in


def broker(broker_id: int, rack: bytes | None) -> bytes:
    host = b"127.0.0.1"
    rack_field = struct.pack(">h", -1) if rack is None else struct.pack(">h", len(rack)) + rack
    return struct.pack(">ih", broker_id, len(host)) + host + struct.pack(">i", 9092) + rack_field


def test_brokers_with_and_without_a_rack() -> None:
    answer = struct.pack(">iii", 0, 0, 2) + broker(1, None) + broker(7, b"rack") + b"cluster id and so on"

    assert brokers_in(answer) == {1, 7}


def test_a_fenced_cluster_has_none() -> None:
    assert brokers_in(struct.pack(">iii", 0, 0, 0)) == set()
