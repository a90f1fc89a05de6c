"""libnftables, which comes with ``nft``: one context, and so one netlink socket, to which the table belongs."""

import ctypes
from pathlib import Path

from brimline.model import BrimlineError

_DEFAULT_CONTEXT = 0
_NET_ADMIN = 1 << 12


class InterceptionFailed(BrimlineError):
    """The kernel, a capability or a library does not allow it; the text says which."""


class Nftables:
    def __init__(self, library: str = "libnftables.so.1") -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise InterceptionFailed(f"{library} is not installed: apt install nftables") from error
        for name, result in (
            ("nft_ctx_new", ctypes.c_void_p),
            ("nft_ctx_get_error_buffer", ctypes.c_char_p),
            ("nft_ctx_get_output_buffer", ctypes.c_char_p),
        ):
            getattr(self._library, name).restype = result
        self._context = ctypes.c_void_p(self._library.nft_ctx_new(_DEFAULT_CONTEXT))
        self._library.nft_ctx_buffer_output(self._context)
        self._library.nft_ctx_buffer_error(self._context)

    def run(self, commands: str) -> str:
        """All of them or none; what they print."""
        if not has_net_admin():  # of that the library writes to standard error, whatever its buffers
            raise InterceptionFailed("CAP_NET_ADMIN is needed")
        code = self._library.nft_run_cmd_from_buffer(self._context, commands.encode())
        said: bytes = self._library.nft_ctx_get_error_buffer(self._context)
        printed: bytes = self._library.nft_ctx_get_output_buffer(self._context)
        if code:
            raise InterceptionFailed(first_line(said.decode(errors="replace")))
        return printed.decode(errors="replace")

    def close(self) -> None:
        self._library.nft_ctx_free(self._context)


def has_net_admin() -> bool:
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) & _NET_ADMIN)


def first_line(said: str) -> str:
    line = said.strip().partition("\n")[0].rpartition("Error: ")[2]
    if "Operation not permitted" in line:
        return "the kernel refuses the nftables rules: CAP_NET_ADMIN is needed, or another helper holds the table"
    if "No such file or directory" in line:
        return "the kernel lacks a part: modprobe nft_tproxy nft_fib_inet nft_reject_inet, or use another kernel"
    return f"the kernel refuses the nftables rules: {line or 'no reason given'}"
