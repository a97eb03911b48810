"""One daemon thread that answers requests, the newest first: what was asked before and has not been begun gives way.

Nothing is sent to the event loop: the newest answer lies in `answer`, and whoever paints looks there.
"""

from __future__ import annotations

import gc
import threading
from typing import Final, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class _NoPauses:
    """While any worker is at it, cycles are not looked for: with the millions of objects of a simulation one look
    stops every thread, the event loop too, for half a second and more. What is no cycle is freed all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_on = gc.isenabled()
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                gc.enable()


_NO_PAUSES: Final = _NoPauses()


class Worker(Generic[Q, A]):
    """Subclasses say how a request is `answered`. The thread starts with the first one and ends with the process.

    answer  the newest, None before any; answered: the number of its request
    """

    NAME = "fusetui-worker"

    def __init__(self) -> None:
        self.answer: A | None = None
        self.answered = 0
        self._change = threading.Condition()
        self._request: Q | None = None
        self._asked = 0
        self._thread: threading.Thread | None = None

    def answered_by(self, request: Q, number: int) -> A:
        """The answer to a request. Runs on the thread; what it raises ends the thread, so it raises nothing."""
        raise NotImplementedError

    def merged(self, waiting: Q, request: Q) -> Q:
        """What to ask when `request` comes while `waiting` has not been begun."""
        return request

    @property
    def busy(self) -> bool:
        """Whether the newest request has no answer yet."""
        return self._asked > self.answered

    def newer(self, number: int) -> bool:
        """Whether something was asked after the request of that number."""
        return self._asked > number

    def ask(self, request: Q) -> None:
        """Have a request answered."""
        with self._change:
            self._request = request if self._request is None else self.merged(self._request, request)
            self._asked += 1
            self._change.notify()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name=self.NAME, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._change:
                while self._request is None:
                    self._change.wait()
                request, number = self._request, self._asked
                self._request = None
            with _NO_PAUSES:
                answer = self.answered_by(request, number)
            self.answer, self.answered = answer, number
