"""The engine of the app: a timer pulls the newest snapshot and hands it to the panes on the screen."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.screen import Screen
from textual.theme import Theme

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import terminal
from fusetui.app.actions import ACTIONS, Action, bindings, hints
from fusetui.app.causes import CauseBoard
from fusetui.app.detour import Detour
from fusetui.app.frame import Frame
from fusetui.app.glyphs import BRAILLE, Glyphs
from fusetui.app.line_two import LineTwo, failure
from fusetui.app.pacing import MAX_FORCED_BACKLOG, Pacer, SelfCost
from fusetui.app.palette import DEFAULT, Palette
from fusetui.app.panes.triage_pane import TriagePane
from fusetui.app.screens.base import TelemetryScreen
from fusetui.app.screens.cores import CoresScreen
from fusetui.app.screens.drill import DrillScreen
from fusetui.app.screens.mapping import MappingScreen
from fusetui.app.screens.overview import OverviewScreen
from fusetui.app.screens.queue import QueueScreen
from fusetui.app.screens.tail import TailScreen
from fusetui.app.screens.triage import TriageScreen
from fusetui.app.session import Session
from fusetui.app.themes import FALLBACKS
from fusetui.app.triage_board import TriageBoard
from fusetui.app.verdict import Verdict, in_trouble

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.app.plan_board import PlanBoard
    from fusetui.app.runtime_board import RuntimeBoard
    from fusetui.triage.finding import Triage
    from fusetui.triage.owners import Owners

SCREENS = (OverviewScreen, TailScreen, QueueScreen, CoresScreen, MappingScreen, TriageScreen)
QUIET_S = 1.0
ANSWER_S = 1.0
ANSWER_FRAMES = 3


@dataclass(frozen=True, slots=True)
class Look:
    """How the app looks at first: usable themes by name, which one, the glyph set, no colour at all."""

    themes: dict[str, Theme]
    theme: str
    glyphs: Glyphs = BRAILLE
    no_color: bool = False


def _fusion() -> Screen[None]:
    from fusetui.app.screens.fusion import FusionScreen  # with the model behind it: not before it is shown

    return FusionScreen()


def _whatif() -> Screen[None]:
    from fusetui.app.screens.whatif import WhatIfScreen  # as above

    return WhatIfScreen()


class Shell(App[None], inherit_bindings=False):
    """Timer, screens, theme and glyphs; what the keys do is in `FusetuiApp`.

    hz            frames per second wanted
    slo_ns        latency objective that replaces the capture's own
    problems      lines about themes and keys that could not be used
    owners        reads who owns what, in a thread
    first_frame   called once, after the first frame
    """

    TITLE = "fusetui"
    BINDINGS = bindings(ACTIONS)
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        **{kind.NAME: kind for kind in SCREENS},
        "fusion": _fusion,
        "whatif": _whatif,
    }
    DEFAULT_MODE = OverviewScreen.NAME
    CSS = """
    ToastRack { margin-bottom: 2; }
    Toast { background: $panel; width: auto; max-width: 60; padding: 0 1; }
    """

    def __init__(
        self,
        session: Session,
        *,
        title: str,
        look: Look,
        hz: float = 2.0,
        slo_ns: int | None = None,
        actions: Sequence[Action] = ACTIONS,
        problems: Sequence[str] = (),
        owners: Callable[[], Owners] | None = None,
        first_frame: Callable[[], None] | None = None,
        driver_class: type[Driver] | None = None,
    ) -> None:
        # Without colour the terminal's own two are used; a filter chosen later would paint black on black.
        super().__init__(driver_class=driver_class, ansi_color=True if look.no_color else None)
        self.session = session
        self.source_title = title
        self.look = look
        self.glyphs = look.glyphs
        self.palette: Palette = DEFAULT
        self.slo_ns = slo_ns
        self.actions = tuple(actions)
        self.problems = tuple(problems)
        self.pacer = Pacer(max(0.2, min(10.0, hz)))
        self.cost = SelfCost()
        self._first_frame = first_frame
        self._shown: Snapshot | None = None
        self._shown_s = float("-inf")
        self._answer_until_s = float("-inf")
        self._answers_left = 0
        self._judged: tuple[Snapshot | None, Snapshot | None] = (None, None)
        self._line_two = LineTwo()
        self.triage = TriageBoard(session.decisions, owners)
        self.detours: list[Detour] = []
        for theme in look.themes.values():
            self.register_theme(theme)
        if look.theme in look.themes:
            self.theme = look.theme
        self.set_keymap(
            {new.id: ",".join(new.keys) for new, old in zip(actions, ACTIONS, strict=True) if new.keys != old.keys}
        )

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return FALLBACKS

    def on_mount(self) -> None:
        self._restyle()
        self.theme_changed_signal.subscribe(self, lambda _: self._restyle())
        self.call_after_refresh(self.tick, now=True)
        self.set_interval(1 / self.pacer.wanted_hz, self.tick)
        self._answers = self.set_interval(0.05, self._look_again, pause=True)
        self._rules = self.set_interval(0.05, self._look_at_rules, pause=True)
        for problem in self.problems:
            self.say(problem, warn=True)
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._terminate, 128 + number)

    def _terminate(self, return_code: int) -> None:
        terminal.leave_even_if_stuck(return_code)
        self.exit(return_code=return_code)

    def tick(self, *, now: bool = False) -> None:
        """Paint the newest snapshot, if the terminal keeps up; now: whatever the frame rate says."""
        screen = self.base_screen
        moment_s = time.monotonic()
        behind = terminal.backlog(self)
        # A held key must not fill the queue of a terminal that does not read.
        now = now and behind <= MAX_FORCED_BACKLOG
        # Under a drill-down that covers it nobody sees the screen.
        if screen is None or isinstance(self.screen, DrillScreen) or not (self.pacer.due(behind, moment_s) or now):
            return
        snapshot = self.session.snapshot
        if _stands(self._shown, snapshot):
            snapshot = self._shown
        if not now and snapshot is self._shown and moment_s - self._shown_s < QUIET_S:
            return
        self._shown, self._shown_s = snapshot, moment_s
        self.cost.update(moment_s, time.process_time(), terminal.bytes_written(self))
        frame = self._frame(snapshot, moment_s)
        screen.show(frame, self.hints(), self.session.held_s if self.session.held else moment_s)
        if self._first_frame is not None:
            self.call_after_refresh(self._first_frame)
            self._first_frame = None

    async def action_show(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        # What is typed next is meant for that screen: it waits until there is one, with a pane that has the focus.
        await self.switch_mode(name)
        screen = self.base_screen
        if screen is not None and screen.focused is None:
            screen.set_focus(next((pane for pane in screen.panes if pane.display), None))
        self.tick(now=True)
        self.call_after_refresh(self.tick, now=True)

    def answer(self) -> None:
        """A key changed the view: paint now, and again as soon as the ingest thread has followed."""
        self.tick(now=True)
        self._answer_until_s = time.monotonic() + ANSWER_S
        self._answers_left = ANSWER_FRAMES
        self._answers.resume()

    def _look_again(self) -> None:
        if not self._answers_left or time.monotonic() > self._answer_until_s:
            self._answers.pause()
        elif self.session.snapshot is not self._shown:
            self._answers_left -= 1
            self.tick(now=True)

    def _look_at_rules(self) -> None:
        if not self.triage.busy:
            self._rules.pause()
            self.tick(now=True)

    def _verdict(self, judged: Snapshot | None) -> Verdict:
        """Line two, with the key that leads to its proof."""
        if self.session.feed.failed:
            return failure(self.session.feed.failed)
        causes = self._known_causes(judged)
        says = self._line_two.says(judged, self._found(judged, causes), causes, self.session.moments)
        if self.detours and not in_trouble(judged):
            return self.detours[-1].says
        if says.finding is None:
            return says
        pane = self.base_screen.focused_pane if self.base_screen else None
        first = isinstance(pane, TriagePane) and pane.finding() is says.finding
        return replace(says, hint="Enter: proof" if first else "p: proof")

    def _known_causes(self, judged: Snapshot | None) -> Causes | None:
        """What the twin said of this window, if it was asked."""
        board: CauseBoard | None = self.__dict__.get("causes")
        found = board.of(judged) if board is not None and judged is not None and board.stands_for(judged) else None
        return None if isinstance(found, str) else found

    def _found(self, judged: Snapshot | None, causes: Causes | None) -> Triage | None:
        """The newest findings; the rules are asked again when the numbers changed."""
        plans: PlanBoard | None = self.__dict__.get("board")
        groups = plans.today.rows if plans is not None and plans.today is not None else ()
        baseline = self.session.baseline
        self.triage.look(judged, causes, groups, None if baseline is None else baseline.before(judged))
        triage = self.triage.of(judged)
        # A view that stands has no next frame in which the answer would be seen.
        stands = judged is not None and judged.transport is not None and not judged.transport.playing
        if self.triage.busy and (stands or triage is None or self.session.held is not None):
            self._rules.resume()
        return triage

    def _frame(self, snapshot: Snapshot | None, now_s: float) -> Frame:
        original, judged = self._judged
        if snapshot is not original:
            judged = snapshot
            if snapshot is not None and self.slo_ns:
                judged = replace(snapshot, header=replace(snapshot.header, slo_ns=self.slo_ns))
            self._judged = (snapshot, judged)
        if self.session.baseline is not None:
            self.session.baseline.look(judged)
        says = self._verdict(judged)
        return Frame(
            snapshot=judged,
            now_s=now_s,
            title=self.source_title,
            verdict=says,
            held=self.session.held is not None,
            window_ns=self.session.feed.window_ns,
            cpu=self.cost.cpu,
            bytes_per_s=self.cost.bytes_per_s,
            skipped=self.pacer.skipped,
            hz=self.pacer.hz,
            slowed=self.pacer.hz < self.pacer.wanted_hz,
            bookmarks=self.session.bookmarks.all,
            moments=self.session.moments,
            watched=self.session.watched,
            baseline=self.session.baseline,
            density=self.session.density(now_s),
            recorded=self.session.tape.rows if self.session.tape else None,
            recording_failed=self.session.tape.failed if self.session.tape else "",
            # Only the screens of plans begin one; others may show what is there.
            board=self.board if self.base_screen and "plan" in self.base_screen.PLACES else self.__dict__.get("board"),
            triage=self.triage,
            causes=self.causes if self.base_screen and "causes" in self.base_screen.PLACES else None,
        )

    @cached_property
    def board(self) -> PlanBoard:
        """Knobs and plans, from when they are first shown."""
        from fusetui.app.plan_board import PlanBoard  # as above

        return PlanBoard(self.session.feed, runtime=self.runtime)

    @cached_property
    def runtime(self) -> RuntimeBoard:
        """The twin of the trace and what was asked of it, from when it is first needed."""
        from fusetui.app.runtime_board import RuntimeBoard  # as above

        return RuntimeBoard(self.session.feed)

    @cached_property
    def causes(self) -> CauseBoard:
        """What caused the tail, from when it is first shown."""
        return CauseBoard(self.session.feed)

    @property
    def base_screen(self) -> TelemetryScreen | None:
        """The screen of panes now shown, also when something lies above it."""
        stack = self.screen_stack
        return stack[0] if stack and isinstance(stack[0], TelemetryScreen) else None

    def hints(self) -> list[tuple[str, str, int]]:
        """The footer's entries here."""
        places = {"always", "pane"} | ({"replay"} if self.session.transport is not None else set())
        places |= self.base_screen.PLACES if self.base_screen else frozenset()
        return hints(self.actions, frozenset(places))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for action in self.actions:
            if action.id != "app.commands":
                yield SystemCommand(action.help, action.id, partial(self.run_action, action.call))

    def say(self, text: str, *, warn: bool = False) -> None:
        """A short notice in the corner."""
        if text:
            self.notify(text, markup=False, severity="warning" if warn else "information", timeout=8 if warn else 2.5)

    def _restyle(self) -> None:
        self.palette = Palette.from_variables(self.theme_variables, self.get_line_filters())
        for stack in self._screen_stacks.values():
            for screen in stack:
                restyle = getattr(screen, "restyle", None)
                if restyle is not None:
                    restyle()

    def _fatal_error(self) -> None:
        """After an unhandled exception: one line, and the traceback (without the values it ran over) in a file."""
        self.panic(terminal.record_crash())


def _stands(shown: Snapshot | None, newest: Snapshot | None) -> bool:
    """Whether a replay stands as it was shown: the same numbers, not only equal ones, of the same moment."""
    if shown is None or newest is None or newest.transport is None or newest.transport.playing:
        return False
    same = shown.latency_series is newest.latency_series and shown.cohort is newest.cohort
    said = (shown.now_ns, shown.transport, shown.health, shown.ingest_per_s, shown.header, shown.filter_text)
    return same and said == (
        newest.now_ns, newest.transport, newest.health, newest.ingest_per_s, newest.header, newest.filter_text
    )  # fmt: skip
