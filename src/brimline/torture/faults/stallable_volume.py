"""A real file system whose server can be stopped, so that ``stat`` and ``statvfs`` on it truly hang. A script.

It is a FUSE file system that speaks the kernel's protocol itself, as far as an empty directory needs it: nothing has to
be installed, the kernel's own ``/dev/fuse`` is enough. It mounts itself on the path it is given, says so, and serves
until it is killed, or until whoever started it has ended. Its death ends every call that hangs in it.
"""

import ctypes
import errno
import os
import signal
import stat
import struct
import sys

DEVICE = "/dev/fuse"
TOTAL_BLOCKS, FREE_BLOCKS, BLOCK = 100_000, 60_000, 4096

# The opcodes, structures and the version of linux/fuse.h
LOOKUP, FORGET, GETATTR, STATFS, INIT, OPENDIR = 1, 2, 3, 17, 26, 27
READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 28, 29, 36, 42
REQUEST = struct.Struct("<IIQQIIII")
REPLY = struct.Struct("<IiQ")
NOT_KEPT = (0, 0, 0)
"""For how long the kernel may answer ``stat`` by itself."""
ROOT = (*(1, BLOCK, 8, 0, 0, 0), *(0, 0, 0, stat.S_IFDIR | 0o755, 2, 0, 0, 0, BLOCK, 0))
BODIES = {
    INIT: struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 32, 0, 0),
    GETATTR: struct.pack("<QII6Q10I", *NOT_KEPT, *ROOT),
    STATFS: struct.pack("<5Q3I28x", TOTAL_BLOCKS, FREE_BLOCKS, FREE_BLOCKS, 100, 50, BLOCK, 255, BLOCK),
    OPENDIR: struct.pack("<QII", 0, 0, 0),
    READDIR: b"",
    RELEASEDIR: b"",
}
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
PR_SET_PDEATHSIG = 1


def mount(path: str) -> int:
    """The open end of the file system that is mounted on ``path``."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        fuse = os.open(DEVICE, os.O_RDWR)
    except OSError as error:
        sys.exit(f"{DEVICE}: {error.strerror}")
    options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if libc.mount(b"stallable", path.encode(), b"fuse", 0, options.encode()) != 0:
        sys.exit(f"mounting FUSE: {os.strerror(ctypes.get_errno())}")
    return fuse


def serve(fuse: int) -> None:
    while True:
        _, opcode, unique, *_ = REQUEST.unpack_from(os.read(fuse, 1 << 18))
        body = BODIES.get(opcode)
        if body is not None:
            os.write(fuse, REPLY.pack(REPLY.size + len(body), 0, unique) + body)
        elif opcode not in UNANSWERED:
            failure = errno.ENOENT if opcode == LOOKUP else errno.ENOSYS
            os.write(fuse, REPLY.pack(REPLY.size, -failure, unique))


if __name__ == "__main__":
    served = mount(sys.argv[1])
    print("mounted", flush=True)
    serve(served)
