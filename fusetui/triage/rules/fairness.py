"""Fairness across streams: the second of the debug branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fusetui.triage.finding import Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.rules.queueing import launched_ahead
from fusetui.triage.text import name, num, pct
from fusetui.triage.where import stream_filter

UNFAIR: Final = 0.8
STARVED: Final = 0.5
_COLUMNS: Final = ("stream", "enqueue_ns", "start_ns", "end_ns")


def _unfair(m: Measures) -> Iterator[Seen]:
    fair = m.snapshot.fairness
    if fair.jain is None or fair.worst_ratio is None or fair.worst_stream is None:
        return
    if fair.jain >= UNFAIR or fair.worst_ratio >= STARVED:
        return
    if launched_ahead(m):
        return  # it asks for nothing yet: its waits are its own order, no rival's share
    # Slow work of its own waits behind itself: then that is the cause, and no other stream's share.
    explained = any(blame.cause >= NAMED for driver, blame in m.blame.items() if driver != "queueing")
    yield Seen(
        f"work of stream {name(fair.worst_stream)} is served {pct(fair.worst_ratio)} of its time and waits for the"
        f" rest; Jain's index {num(fair.jain)} over {fair.backlogged} backlogged streams",
        "info" if explained else "warn",
        "possible" if explained else "likely",
        "service and waits are counted; whether it waits behind others or behind itself is not",
        (
            Fact("Jain's index of service over demand", fair.jain, "", _COLUMNS),
            Fact("service over demand of the worst", fair.worst_ratio, "share", _COLUMNS),
        ),
        subject=fair.worst_stream,
        filter=stream_filter(m.snapshot, fair.worst_stream),
    )


RULES: Final = (
    Rule(
        id="fairness/streams", about="stream", look=_unfair, inputs=("fairness",),
        threshold=f"Jain < {UNFAIR} and the worst stream under {STARVED:.0%}",
        why="with two streams 0.8 is one served at a third of the other",
        does_not_prove=("that it is wrong: priorities may want it so, and phases of one request are no rivals",
                        "that others took it: its own work may be slow"),
        next_action="compare priorities with what was served", topic="fairness", stage="runtime queue",
        fix="cap the share of the stream served most, where the two are rivals and no phases of the same requests",
        rollback="remove the cap", screen="cores", pane="streams",
    ),
)  # fmt: skip
