"""Causes are asked for again and again and take seconds: those of the last few twins are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import Final

from fusetui.analysis.attribution.causes import Causes, Scale, causes_of
from fusetui.analysis.twin import Twin

KEPT: Final = 8


class KeptCauses:
    """Any thread may ask; two that ask at once for the same both work it out."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Causes | str] = OrderedDict()
        self._lock = Lock()

    def of(self, twin: Twin, *, scale: Scale = "ns", wanted: Callable[[], bool] = lambda: True) -> Causes | str:
        """As `causes_of`; what was given up is not kept."""
        key = key_of(twin) + scale.encode()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = causes_of(twin, scale=scale, wanted=wanted)
        if wanted():
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return found


def key_of(twin: Twin) -> bytes:
    """The same for the same load and runtime: a digest of the arrivals, of what happened and of the settings."""
    digest = blake2b(digest_size=16)
    load, jobs = twin.load, twin.outcome.jobs
    for array in (load.arrival_ns, load.tokens, load.output, load.stream, load.work, jobs.parts, jobs.core):
        digest.update(array.tobytes())
    settings = twin.config
    told = (settings.batching, settings.lookup, settings.placement, settings.slow, settings.split, settings.contention)
    digest.update(repr((told, settings.cores, settings.cores_per_device, twin.fit)).encode())
    return digest.digest()
