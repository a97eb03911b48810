"""The application: the shell and what the keys do, one method an action."""

from __future__ import annotations

from textual.screen import ModalScreen

from fusetui.app.footer import Footer
from fusetui.app.glyphs import SETS
from fusetui.app.panes.pipeline import PipelinePane
from fusetui.app.panes.triage_pane import TriagePane
from fusetui.app.screens.help import HelpScreen, keys_text
from fusetui.app.screens.prompt import Prompt
from fusetui.app.screens.rows import RowsScreen
from fusetui.app.scrubber import Scrubber
from fusetui.app.session import NOT_HERE
from fusetui.app.triage_keys import TriageKeys

_STAGE_SCREENS = ("fusion", "queue", "cores", "tail")


class FusetuiApp(TriageKeys):
    """fusetui on a terminal."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Not what shows a screen while a question or a drill-down is open: the keys are theirs."""
        return not (action == "show" and isinstance(self.screen, ModalScreen))

    def action_pause(self) -> None:
        self._did(self.session.pause())

    def action_step(self, columns: int) -> None:
        self._did(self.session.step(columns))

    def action_speed(self, steps: int) -> None:
        self._did(self.session.speed(steps))

    def action_window(self, steps: int) -> None:
        self._did(self.session.window(steps))

    def action_loop(self) -> None:
        self._did(self.session.loop())

    def action_go(self) -> None:
        if self.session.transport is None:
            self.say(NOT_HERE)
            return

        def go(text: str) -> None:
            self.session.go(text)
            self.answer()

        self.push_screen(Prompt("go to", "03:10:41.2, -10s or 37%", go))

    def action_bookmark(self) -> None:
        screen = self.base_screen
        name = screen.NAME if screen else "overview"
        self.push_screen(Prompt("bookmark", "a label", lambda text: self._did(self.session.add_bookmark(text, name))))

    async def action_next_mark(self, direction: int) -> None:
        mark, says = self.session.next_bookmark(direction)
        if mark is not None and mark.screen in self.MODES and mark.screen != self.current_mode:
            await self.action_show(mark.screen)
        self._did(says)

    def action_next_moment(self, direction: int) -> None:
        self._did(self.session.next_moment(direction))

    def action_filter(self) -> None:
        shown = self.session.feed.snapshot
        value = shown.filter_text if shown else ""

        def show_only(text: str) -> None:
            self.session.feed.set_filter(text)
            self._did(f"filtered{self.session.when_held}" if self.session.held else "")

        self.push_screen(Prompt("filter", "stream ~ prefill and wait > 5ms", show_only, value))

    def action_clear(self) -> None:
        screen = self.base_screen
        if screen is not None and not self.zoomed_by_detour and screen.unzoom():
            return
        if self.detours:
            self.call_later(self.action_back)
            return
        shown = self.session.feed.snapshot
        if shown is not None and shown.filter_text:
            self.session.feed.set_filter("")
            self._did(f"filter cleared{self.session.when_held}")

    async def action_rows(self) -> None:
        screen, snapshot = self.base_screen, self.session.snapshot
        pane = screen.focused_pane if screen else None
        if isinstance(pane, TriagePane):
            await self.prove(pane.finding())
            return
        if pane is None or snapshot is None:
            self.say("no pane is focused (tab)" if snapshot else "no data yet")
            return
        query = pane.row_query(snapshot)
        if query is None:
            self.say("no rows stand behind this pane")
            return
        self.push_screen(
            RowsScreen(
                pane.title(snapshot),
                query,
                self.session.feed.rows,
                snapshot.header.clock,
                names=pane.row_names(snapshot),
            )
        )

    def action_zoom(self) -> None:
        if self.base_screen is not None:
            self.base_screen.zoom()

    def action_copy(self) -> None:
        pane = self.base_screen.focused_pane if self.base_screen else None
        if pane is not None:
            self.copy_to_clipboard(pane.text())
            finding = isinstance(pane, TriagePane) and pane.copied() is not None
            self.say("finding copied as Markdown" if finding else "pane copied as text")

    def action_explain(self) -> None:
        pane = self.base_screen.focused_pane if self.base_screen else None
        if pane is None:
            self.action_help()
        else:
            self.push_screen(HelpScreen(pane.TITLE, pane.HELP))

    def action_help(self) -> None:
        self.push_screen(HelpScreen("Keys", keys_text(self.actions)))

    def action_focus_pane(self, direction: int) -> None:
        if direction > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_select(self, delta: int) -> None:
        pane = self.base_screen.focused_pane if self.base_screen else None
        if pane is not None:
            pane.select(delta)

    def action_turn(self, steps: int) -> None:
        screen = self.base_screen
        if screen is not None:
            screen.turn(steps)

    def action_reset_knob(self, every: bool) -> None:
        screen = self.base_screen
        if screen is not None:
            screen.reset(every=every)

    def action_read_plan(self) -> None:
        screen = self.base_screen
        if screen is not None and "plan" in screen.PLACES:
            self.say("reading the capture's operators" if screen.read_again() else "no data yet")

    def action_causes(self) -> None:
        screen = self.base_screen
        if screen is not None and "causes" in screen.PLACES:
            self.causes.look(self.session.snapshot, asked=True)
            self.answer()

    def action_next_theme(self) -> None:
        names = list(self.look.themes)
        if not names:
            return
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]
        self.say(f"theme {self.theme}")

    def action_next_glyphs(self) -> None:
        names = list(SETS)
        self.glyphs = SETS[names[(names.index(self.glyphs.name) + 1) % len(names)]]
        self._restyle()
        self.say(f"glyphs {self.glyphs.name}")

    def on_scrubber_seek(self, message: Scrubber.Seek) -> None:
        self._did(self.session.seek(message.fraction))

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        same = [action for action in self.actions if action.hint == message.hint]
        if same:
            self.call_later(self.run_action, same[min(message.offset, len(same) - 1)].call)

    async def on_pipeline_pane_chosen(self, message: PipelinePane.Chosen) -> None:
        await self.action_show(_STAGE_SCREENS[message.stage])

    def _did(self, says: str) -> None:
        self.say(says)
        self.answer()
