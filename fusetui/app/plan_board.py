"""What the fusion and what-if screens share: the knobs, the group under the cursor, and the newest plans."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fusetui.analysis.planned import Captured, Knobs, Planned
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app.knobs import SHAPE, Knob, Value, changed, choices, knobs_of, shown_value, stepped, value_of
from fusetui.app.planner import Answer, Planner, Recover, Request, recovery
from fusetui.app.runtime_board import RuntimeBoard
from fusetui.app.runtime_knobs import RUNTIME

if TYPE_CHECKING:
    import polars as pl

    from fusetui.app.session import Feed

RECOVER_ROWS: Final = 20_000
"""Newest executions that the operators of a capture are looked for in."""
READ_EVERY_S: Final = 10.0
"""However fast a replay runs: as often as this, at most, its operators are looked for by themselves."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """The part of the capture that was read for its operators."""

    filter_text: str
    start_ns: int
    end_ns: int
    at_s: float


class PlanBoard:
    """Knobs and plans of one session. Nothing is computed before a plan screen `look`s.

    start    today's knobs; changes: those of the what-if screen that stand elsewhere
    runtime  knobs and answers of the twin of the trace
    group    label of the group under the cursor ("g1"), None: none
    """

    def __init__(self, feed: Feed, planner: Planner | None = None, runtime: RuntimeBoard | None = None) -> None:
        self.planner = planner or Planner()
        self.runtime = runtime or RuntimeBoard(feed)
        self.start = Knobs()
        self.changes: dict[str, Value] = {}
        self.group: str | None = None
        self._feed = feed
        self._block_chosen = False
        self._looked: _Looked | None = None
        self._begun = False
        self._device_known = False
        self._device: str | None = None

    @property
    def asked(self) -> bool:
        """Whether a plan was ever asked for."""
        return self._begun

    @property
    def answer(self) -> Answer | None:
        """The newest plans."""
        return self.planner.answer

    @property
    def today(self) -> Planned | None:
        """The plan as things are."""
        return self.answer.today if self.answer else None

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The knobs there are now: those of the runtime before the sizes of a block, of which there may be many."""
        of_plan = knobs_of(self._now.block)
        fixed = len(knobs_of(""))
        return (*of_plan[:fixed], *self.runtime.knobs, *of_plan[fixed:])

    @property
    def changed(self) -> frozenset[str]:
        """The names of the knobs that stand elsewhere than today."""
        return frozenset((*self.changes, *self.runtime.changes))

    @property
    def captured(self) -> Captured | None:
        """The operators of the capture, where they are known."""
        capture = self.answer.capture if self.answer else None
        return capture if isinstance(capture, Captured) else None

    @property
    def _now(self) -> Knobs:
        """Today's knobs: what the planner found about the capture counts unless a block was chosen."""
        answer = self.answer
        return self.start if answer is None or self._block_chosen else answer.start

    @property
    def doing(self) -> str:
        """What is being waited for, before the first plan."""
        return "reading the operators of the capture" if self._looked else "planning"

    def device_told(self, name: str) -> bool:
        """Whether the plan is for a device that the capture or a person named, not for one merely assumed."""
        captured = self.captured
        if captured is None or "hardware" in self.changes:
            return True
        named = captured.hardware or self._device
        return named is not None and named.lower() == name.lower()

    def state(self) -> tuple[object, ...]:
        """Equal as long as there is nothing new to draw."""
        number = self.answer.number if self.answer else 0
        return number, self.group, tuple(self.changes.items()), self.start.block, self.runtime.state()

    def look(self, snapshot: Snapshot | None) -> None:
        """A plan screen is shown: see to it that there is a plan, and that it is of the operators of this window."""
        if snapshot is not None and not self._device_known:
            self._device_known = True
            self._device = hardware_of(snapshot.header.hardware)
            self.start = replace(self.start, hardware=self._device or self.start.hardware)
        recover = self._recovery(snapshot) if snapshot is not None and self._moved_on(snapshot) else None
        if recover is not None or not self._begun:
            self._begun = True
            self._ask(recover)

    def read_again(self, snapshot: Snapshot | None) -> bool:
        """Look for the operators in what the capture holds now; whether there is a capture."""
        if snapshot is None:
            return False
        self._ask(self._recovery(snapshot))
        return True

    def turn(self, name: str, steps: int) -> str:
        """Move a knob; what to tell the person, if anything."""
        knob = next((knob for knob in self.knobs if knob.name == name), None)
        if knob is None:
            return "no knob is selected"
        if name.startswith(RUNTIME):
            self.runtime.turn(name, steps)
            return ""
        value = stepped(knob, self.value(knob), steps, captured=self.captured is not None)
        if knob.name == "block":
            return self._choose_block(str(value))
        self._set(knob, value)
        self._ask(None)
        return ""

    def reset(self, name: str) -> None:
        """Put a knob back to where it stands today."""
        self.runtime.reset(name)
        if self.changes.pop(name, None) is not None:
            self._ask(None)

    def reset_all(self) -> None:
        """Put every knob back."""
        self.runtime.reset()
        if self.changes:
            self.changes.clear()
            self._ask(None)

    def value(self, knob: Knob) -> Value:
        """Where a knob stands."""
        return value_of(changed(self._now, self.changes), knob.name)

    def text(self, knob: Knob) -> tuple[str, str]:
        """(where a knob stands, where it stands today)."""
        if knob.name.startswith(RUNTIME):
            return self.runtime.text(knob)
        return shown_value(knob, self.value(knob)), shown_value(knob, value_of(self._now, knob.name))

    def _set(self, knob: Knob, value: Value) -> None:
        today = value_of(self._now, knob.name)
        same = str(value).lower() == str(today).lower() if knob.sort == "choice" else value == today
        if same:
            self.changes.pop(knob.name, None)
        else:
            self.changes[knob.name] = value

    def _choose_block(self, block: str) -> str:
        """Another block is another subject: both sides of the comparison are of it, and its sizes begin anew."""
        dtype = self.captured.dtype if self.captured is not None else self._now.dtype
        self.start = replace(self.start, block=block, shapes={}, dtype=dtype, hardware=self._now.hardware)
        self._block_chosen = True
        self.changes = {k: v for k, v in self.changes.items() if not k.startswith(SHAPE) and (block or k != "dtype")}
        self._ask(None)
        return ""

    def _ask(self, recover: Recover | None) -> None:
        self.planner.ask(Request(self.start, dict(self.changes), self._block_chosen, recover))

    def _moved_on(self, snapshot: Snapshot) -> bool:
        """Whether the window has nothing in common any more with the part that was read."""
        if not snapshot.launch.total:
            return False
        seen = self._looked
        if seen is None or seen.filter_text != snapshot.filter_text:
            return True
        elsewhere = snapshot.window_start_ns >= seen.end_ns or snapshot.now_ns <= seen.start_ns
        return elsewhere and time.monotonic() - seen.at_s >= READ_EVERY_S

    def _recovery(self, snapshot: Snapshot) -> Recover:
        from fusetui.analysis.recover import captured_from  # only when it is asked for: the first frame must not wait

        self._looked = _Looked(snapshot.filter_text, snapshot.window_start_ns, snapshot.now_ns, time.monotonic())
        feed, header = self._feed, snapshot.header
        query = RowQuery(kind="execution", order="time", limit=RECOVER_ROWS)

        def build(frame: pl.DataFrame) -> Captured | str:
            return captured_from(frame, header)

        return recovery(lambda: feed.rows(query), build)


def hardware_of(facts: Mapping[str, str]) -> str | None:
    """The preset that a header's hardware facts name, None when they name none."""
    told = [f"-{_folded(value)}-" for value in facts.values()]
    for name in sorted(choices("hardware", captured=False), key=len, reverse=True):
        if name != "host" and any(f"-{_folded(name)}-" in text for text in told):
            return name
    return None


def _folded(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
