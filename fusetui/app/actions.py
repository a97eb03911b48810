"""Every action once: its keys, its footer hint and its help. Bindings, footer, help and palette are made from this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding

Where = Literal["always", "replay", "pane", "plan", "knobs", "causes", "triage", "nowhere"]


@dataclass(frozen=True, slots=True)
class Action:
    """Something a key does.

    id     "area.action": the name in keys.toml and of the binding
    keys   Textual key names
    call   the Textual action that runs
    hint   a word or two for the footer; neighbours with the same hint share it. "": not in the footer
    help   one sentence
    where  "always"; "replay": only with a capture that can be moved in; "pane": about the focused pane;
           "plan": on the screens that show a plan; "knobs": on the what-if screen;
           "causes": where it stands what the tail is made of; "triage": on the triage screen
    rank   footer place when room is short: lower stays longer
    """

    id: str
    keys: tuple[str, ...]
    call: str
    hint: str
    help: str
    where: Where = "always"
    rank: int = 5


ACTIONS: Final[tuple[Action, ...]] = (
    Action("screen.overview", ("1",), "show('overview')", "Overview", "Everything at a glance", rank=2),
    Action("screen.tail", ("2",), "show('tail')", "Tail", "Latency quantiles and what the tail is made of", rank=2),
    Action("screen.queue", ("3",), "show('queue')", "Queue", "Queue waits by stream, depth, launches", rank=2),
    Action("screen.cores", ("4",), "show('cores')", "Cores", "Busy cores and their imbalance", rank=2),
    Action("screen.fusion", ("5",), "show('fusion')", "Fusion", "Fusion groups, tiles, roofline and policies", rank=2),
    Action(
        "screen.mapping", ("6",), "show('mapping')", "Mapping", "Which plan ran for what came, and the drift", rank=2
    ),
    Action("screen.triage", ("7",), "show('triage')", "Triage", "What is wrong, its evidence and decisions", rank=2),
    Action(
        "screen.whatif",
        ("8",),
        "show('whatif')",
        "What-if",
        "What the model says of other hardware and sizes",
        rank=2,
    ),
    Action(
        "view.pause", ("space",), "pause", "pause", "Pause or go on; a live view is held, its source is not", rank=1
    ),
    Action("view.back", ("comma",), "step(-1)", "step", "One chart column back (and pause)", "replay", 3),
    Action("view.forward", ("full_stop",), "step(1)", "step", "One chart column forward (and pause)", "replay", 3),
    Action("view.slower", ("less_than_sign",), "speed(-1)", "speed", "Replay slower", "replay", 4),
    Action("view.faster", ("greater_than_sign",), "speed(1)", "speed", "Replay faster", "replay", 4),
    Action("view.shorter", ("left_square_bracket",), "window(-1)", "window", "A shorter window", rank=6),
    Action("view.longer", ("right_square_bracket",), "window(1)", "window", "A longer window", rank=6),
    Action(
        "view.go", ("g",), "go", "go to", "Go to a time (03:10:12.5), an offset (-10s) or a share (37%)", "replay", 4
    ),
    Action("view.loop", ("l",), "loop", "loop", "Begin again at the end of the capture, or stop there", "replay", 8),
    Action("mark.add", ("b",), "bookmark", "mark", "Bookmark this window with a label", rank=5),
    Action("mark.next", ("n",), "next_mark(1)", "", "Go to the next bookmark", "replay"),
    Action("mark.previous", ("N",), "next_mark(-1)", "", "Go to the bookmark before", "replay"),
    Action("moment.next", ("a",), "next_moment(1)", "", "Go to the next anomaly: a change, an alert or a mark"),
    Action("moment.previous", ("A",), "next_moment(-1)", "", "Go to the anomaly before"),
    Action("view.filter", ("slash",), "filter", "filter", "Show only rows that match an expression", rank=3),
    Action("view.clear", ("escape",), "clear", "", "Back from a proof or a walk, out of the zoom, or clear the filter"),
    Action("triage.proof", ("p",), "proof", "", "Go to the proof of what line two says; esc brings back"),
    Action(
        "triage.branch",
        ("d",),
        "branch",
        "debug",
        "Walk the debug branches: the tail, fairness of streams, memory limits; esc brings back",
        rank=4,
    ),
    Action("triage.decide", ("o",), "decide", "decide", "Say who does what about the selected finding", "triage", 2),
    Action("triage.save", ("w",), "save_flight", "save", "Save the rows still in memory as a capture", rank=7),
    Action("pane.rows", ("enter",), "rows", "rows", "The rows behind the focused pane", "pane", 3),
    Action("pane.zoom", ("z",), "zoom", "zoom", "The focused pane on the whole screen, and back", "pane", 6),
    Action("pane.copy", ("y",), "copy", "copy", "Copy the focused pane as text to the clipboard", "pane", 7),
    Action(
        "pane.explain", ("question_mark",), "explain", "explain", "Formula, unit and blind spots of the pane", rank=2
    ),
    Action("pane.next", ("tab", "right"), "focus_pane(1)", "", "Focus the next pane"),
    Action("pane.previous", ("shift+tab", "left"), "focus_pane(-1)", "", "Focus the pane before"),
    Action("pane.up", ("up", "k"), "select(-1)", "", "Select the line above in the focused pane", "pane"),
    Action("pane.down", ("down", "j"), "select(1)", "", "Select the line below in the focused pane", "pane"),
    Action("knob.more", ("plus", "equals_sign"), "turn(1)", "change", "The selected knob up (also →)", "knobs", 1),
    Action("knob.less", ("minus",), "turn(-1)", "change", "The selected knob down (also ←)", "knobs", 1),
    Action("knob.reset", ("0",), "reset_knob(False)", "reset", "The selected knob as it is today", "knobs", 2),
    Action("knob.reset_all", ("R",), "reset_knob(True)", "reset all", "Every knob as it is today", "knobs", 3),
    Action("plan.read", ("r",), "read_plan", "read again", "Look for the operators of the capture again", "plan", 6),
    Action("tail.causes", ("c",), "causes", "causes", "Ask the model what caused the tail of this window", "causes", 6),
    Action("app.theme", ("t",), "next_theme", "theme", "The next theme", rank=9),
    Action("app.glyphs", ("G",), "next_glyphs", "glyphs", "The next glyph set: braille, block, ASCII", rank=9),
    Action("app.commands", ("ctrl+p",), "command_palette", "", "Find an action by name"),
    Action("app.help", ("h", "f1"), "help", "keys", "Every key", rank=4),
    Action("app.quit", ("q", "ctrl+c", "ctrl+q"), "quit", "quit", "Leave", rank=1),
)

NEVER_LOST: Final = ("app.quit", "app.help")
"""Actions that keep their keys whatever a keymap says about others."""

_SHOWN: Final = {
    "space": "space", "comma": ",", "full_stop": ".", "less_than_sign": "<", "greater_than_sign": ">",
    "plus": "+", "minus": "-", "equals_sign": "=",
    "left_square_bracket": "[", "right_square_bracket": "]", "slash": "/", "question_mark": "?",
    "escape": "esc", "enter": "enter", "ctrl+p": "^p", "ctrl+c": "^c", "ctrl+q": "^q", "f1": "F1",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "shift+tab": "shift-tab",
}  # fmt: skip


def shown(key: str) -> str:
    """A key as people write it."""
    return _SHOWN.get(key, key)


def bindings(actions: Sequence[Action]) -> list[Binding | tuple[str, str] | tuple[str, str, str]]:
    """Textual bindings of the actions.

    Those of screens are looked at before the focused pane's: what is typed after one waits until it is done.
    """
    return [
        Binding(
            ",".join(action.keys), action.call, action.help, show=False, id=action.id,
            priority=action.id.startswith("screen."),
        )
        for action in actions
    ]  # fmt: skip


def hints(actions: Sequence[Action], places: frozenset[str]) -> list[tuple[str, str, int]]:
    """Footer entries (keys, hint, rank) of the actions that work in `places`, in order; pairs are joined."""
    entries: list[tuple[str, str, int]] = []
    for action in actions:
        if not action.hint or action.where not in places or not action.keys:
            continue
        key = shown(action.keys[0])
        if entries and entries[-1][1] == action.hint:
            keys, hint, rank = entries[-1]
            entries[-1] = (f"{keys}{key}", hint, rank)
        else:
            entries.append((key, action.hint, action.rank))
    return entries
