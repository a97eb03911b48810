"""Small /proc files kept open between looks: reading one again is a single system call, a sixth of opening it anew."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container
from typing import Final

from fusetui.sources.host_linux import read_bytes

_MOST: Final = 4096
_READ_BYTES: Final = 256


class Handles:
    """Open files by task id, at most half of what this process may have open."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        limit = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 0
        self._most = min(_MOST, max(0, limit // 2))

    def read(self, tid: int, path: str) -> bytes:
        """The file's content now; b"" when it is gone or not ours to read."""
        handle = self._open.get(tid)
        if handle is not None:
            try:
                return os.pread(handle, _READ_BYTES, 0)
            except OSError:
                # The task is gone; its number may belong to another by now.
                self._close(tid)
        if len(self._open) >= self._most:
            return read_bytes(path) or b""
        try:
            handle = self._open[tid] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(handle, _READ_BYTES, 0)
        except OSError:
            self._close(tid)
            return b""

    def keep_only(self, tids: Container[int]) -> None:
        """Close all files but these."""
        for tid in [tid for tid in self._open if tid not in tids]:
            self._close(tid)

    def close(self) -> None:
        """Close all."""
        self.keep_only(())

    def _close(self, tid: int) -> None:
        handle = self._open.pop(tid, None)
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)
