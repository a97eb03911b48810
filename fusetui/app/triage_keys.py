"""What the keys about findings do: the proof, the walk through the debug branches, decisions, the flight recorder."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from textual import work

from fusetui.app import fmt
from fusetui.app.branches import BRANCHES, told
from fusetui.app.decisions import Decision, now_utc
from fusetui.app.detour import Detour, show_slice, show_view, view_of
from fusetui.app.finding_text import class_of
from fusetui.app.pane import Pane
from fusetui.app.screens.base import TelemetryScreen
from fusetui.app.screens.decide import DecideScreen
from fusetui.app.shell import SCREENS, Shell
from fusetui.app.verdict import Severity, Verdict, top_finding
from fusetui.telemetry.errors import TelemetryError

if TYPE_CHECKING:
    from fusetui.triage.finding import Finding

MAX_DETOURS: Final = 16
NONE_FOUND: Final = "nothing crossed its threshold (7 says what was looked at)"


class TriageKeys(Shell):
    """The shell, and where findings lead."""

    zoomed_by_detour = False

    async def action_proof(self) -> None:
        await self.prove(top_finding(self.triage.of(self.session.snapshot)))

    async def prove(self, finding: Finding | None) -> None:
        """Its screen and pane, with its rows alone in view."""
        if finding is None:
            self.say(NONE_FOUND)
            return
        detour = self._detour(Verdict(_severity(finding), f"proof of {class_of(finding)}: {finding.next_action}"))
        try:
            show_slice(self.session, finding.slice)
        except ValueError as error:
            self.say(f"its filter could not be applied: {str(error).splitlines()[0]}", warn=True)
        await self._go(detour, finding.screen, finding.pane)
        if self.session.held is not None and finding.slice.filter:
            self.say(f"filtered{self.session.when_held}")

    async def action_branch(self) -> None:
        """The next step of the walk, or its first; after the last one back to where it began."""
        snapshot = self.session.snapshot
        on = self.detours[-1] if self.detours else None
        step = 0 if on is None or on.step is None else on.step + 1
        if step == len(BRANCHES):
            await self.action_back()
            return
        if snapshot is None:
            self.say("no data yet")
            return
        says = Verdict("calm", told(step, snapshot), hint="d: next · esc: back")
        if on is not None and on.step is not None:
            self.detours.pop()
            detour = Detour(on.view, says, on.screen, on.pane, on.zoomed, step)
        else:
            detour = self._detour(says, step)
        await self._go(detour, BRANCHES[step].screen, BRANCHES[step].pane)

    async def action_back(self) -> None:
        """Back from the last detour."""
        if not self.detours:
            return
        detour = self.detours.pop()
        self._unzoom()
        try:
            show_view(self.session, detour.view, filtered=detour.step is None)
        except ValueError as error:
            self.say(str(error).splitlines()[0], warn=True)
        await self.action_show(detour.screen)
        screen = self.base_screen
        if screen is not None and detour.pane is not None:
            screen.set_focus(screen.panes[detour.pane])
            if detour.zoomed and screen.zoomed is None:
                screen.zoom()
        self.answer()

    def _detour(self, says: Verdict, step: int | None = None) -> Detour:
        screen = self.base_screen
        pane = screen.focused_pane if screen is not None else None
        at = screen.panes.index(pane) if screen is not None and pane in screen.panes else None
        zoomed = screen is not None and screen.zoomed is not None
        name = screen.NAME if screen is not None else self.DEFAULT_MODE
        hint = says.hint or "esc: back"
        says = Verdict(says.severity, says.text, finding=says.finding, hint=hint)
        return Detour(view_of(self.session), says, name, at, zoomed, step)

    async def _go(self, detour: Detour, screen: str, pane: str) -> None:
        self._unzoom()
        screen = self._screen_with(screen, pane)
        self.detours = [*self.detours[1 - MAX_DETOURS :], detour]
        await self.action_show(screen if screen in self.MODES else self.DEFAULT_MODE)
        shown = self.base_screen
        wanted = pane_of(shown, pane) if shown is not None else None
        if shown is not None and wanted is not None:
            # Hidden for want of room: then it gets all of it.
            hidden = not wanted.display
            wanted.display = True
            shown.set_focus(wanted)
            if hidden and shown.zoomed is None:
                shown.zoom()
                self.zoomed_by_detour = True
        self.answer()

    def _screen_with(self, name: str, module: str) -> str:
        """The screen named, or one that has the pane where that one does not."""
        kinds = {kind.NAME: kind for kind in SCREENS}
        if name not in kinds or any(module_of(pane) == module for pane in kinds[name].PANES):
            return name
        return next((n for n, k in kinds.items() if any(module_of(pane) == module for pane in k.PANES)), name)

    def _unzoom(self) -> None:
        if self.zoomed_by_detour and self.base_screen is not None:
            self.base_screen.unzoom()
        self.zoomed_by_detour = False

    def action_decide(self) -> None:
        screen, snapshot = self.base_screen, self.session.snapshot
        finding = self.triage.finding(snapshot)
        if screen is None or "triage" not in screen.PLACES:
            self.say("decisions are taken on the triage screen (7)")
        elif finding is None:
            self.say("no finding to decide about")
        else:
            last = self.triage.decided(finding)
            values = {
                "owner": last.owner if last else finding.owner,
                "status": last.status if last else "accepted",
                "fix": last.fix if last else finding.fix,
                "rollback": last.rollback if last else finding.rollback,
                "guardrail": last.guardrail if last else "",
            }
            heading = f"decision about {class_of(finding)}: {finding.sentence}"
            self.push_screen(DecideScreen(heading, values, partial(self._decided, finding)))

    def _decided(self, finding: Finding, given: dict[str, str]) -> None:
        decision = Decision(now_utc(), finding.id, finding.subject, finding.sentence, **given)
        self.say(self.session.decide(decision))
        self.answer()

    @work(exclusive=True, group="flight", exit_on_error=False)
    async def action_save_flight(self) -> None:
        from fusetui.app.flight import folders, save_flight  # with the writer behind it

        feed = self.session.feed
        try:
            saved = await asyncio.to_thread(save_flight, feed.raw, feed.source.header, folders())
        except (TelemetryError, OSError, ValueError, MemoryError) as error:
            self.say(f"not saved: {error}", warn=True)
            return
        rows, span = fmt.count(saved.rows).strip(), fmt.duration(saved.span_ns).strip()
        self.notify(f"{rows} rows of the last {span} saved: {saved.path}", markup=False, timeout=8)


def pane_of(screen: TelemetryScreen, module: str) -> Pane | None:
    """The pane of a screen that is made in a module of `panes`, None when it has none of it."""
    return next((pane for pane in screen.panes if module_of(type(pane)) == module), None)


def module_of(kind: type[Pane]) -> str:
    """The module of `panes` that a pane is made in, which is what rules know it by."""
    return kind.__module__.rpartition(".")[2]


def _severity(finding: Finding) -> Severity:
    return "calm" if finding.severity == "info" else finding.severity
