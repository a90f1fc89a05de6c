"""What BrimlineJmx.java does with its input, in a few lines of Python: beans and their values."""

import struct
from io import BytesIO


class JvmModel:
    def __init__(self) -> None:
        self.beans: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self.serials: list[int] = []

    def read(self, data: bytes) -> None:
        stream = BytesIO(data)
        while command := stream.read(1):
            self._obey(command, stream)

    def _obey(self, command: bytes, stream: BytesIO) -> None:
        (number,) = struct.unpack(">i", stream.read(4))
        if command == b"R":
            value, length = struct.unpack(">qH", stream.read(10))
            name = stream.read(length).decode()
            assert number not in self._names, "an id in use was given away again"
            assert name not in self.beans, "InstanceAlreadyExistsException"
            self._names[number] = name
            self.beans[name] = value
        elif command == b"U":
            del self.beans[self._names.pop(number)]
        elif command == b"S":
            ids = struct.unpack(f">{number}i", stream.read(4 * number))
            values = struct.unpack(f">{number}q", stream.read(8 * number))
            self.beans.update({self._names[i]: value for i, value in zip(ids, values, strict=True)})
        else:
            assert command == b"E"
            self.serials.append(number)
