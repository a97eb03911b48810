"""How work reached the queue: what the launch join found, and what launching costs."""

from __future__ import annotations

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.facts import Fact, draw_facts
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.common import QUEUE_TEACHES, quantile_text


class LaunchPane(Pane):
    TITLE = "Launch path"
    HELP = """How executions reached the queue.

joined    executions whose enqueue time is known (from profilers: the end of their launch call), of all in the window
orphans   the others: they count as busy time and are left out of queue wait
nodes     joined executions that only followed another node of the same graph launch: no wait of their own
clipped   started before their launch call returned: raw wait below 0, counted as 0
clock     started before their launch call even began: the clocks disagree
short     executions shorter than their own launch call
call      duration of the launch call (launch_ns); over 50 µs: runtime outliers; queue wait over 100 µs: delay outliers
exposed   Σ of the gaps between consecutive executions of a stream that the launch path explains
Columns   enqueue_ns, launch_ns, start_ns, end_ns, stream, node
Blind to  launches that the source did not record."""

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(snapshot.launch.total).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.launch.joined else QUEUE_TEACHES

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        launch = snapshot.launch
        total, joined = launch.total, launch.joined

        def share(part: int, whole: int) -> str:
            return fmt.percent(part / whole) if whole else fmt.percent(None)

        def counted(label: str, part: int, whole: int, alarm: bool = False) -> Fact:
            ink = Ink.WARN if alarm and part else Ink.FG
            return Fact(label, fmt.count(part), ink, share(part, whole))

        facts = [
            counted("joined", joined, total),
            counted("orphans", launch.orphans, total),
            counted("nodes", launch.nodes, joined),
            counted("clipped", launch.clipped, joined),
            counted("clock", launch.clock_errors, joined, alarm=True),
            counted("short", launch.short, joined),
            counted("slow calls", launch.runtime_outliers, joined),
            counted("slow starts", launch.delay_outliers, joined),
        ]
        y = draw_facts(canvas, facts, value_cells=fmt.COUNT_CELLS, note_cells=fmt.PERCENT_CELLS)
        if y >= canvas.height:
            return
        x = canvas.put(0, y, "call", Ink.DIM)
        for name in ("p99", "p95", "p50"):
            x = canvas.put(x + 2, y, f"{name} ", Ink.DIM)
            x = canvas.put(x, y, quantile_text(launch.call, name), Ink.STRONG if name == "p99" else Ink.FG)
        canvas.put(0, y + 1, "exposed", Ink.DIM)
        canvas.put(8, y + 1, fmt.duration(launch.exposed_ns), Ink.STRONG)
        if launch.exposed_ns is not None and snapshot.span_ns:
            canvas.put(17, y + 1, f"{share(launch.exposed_ns, snapshot.span_ns)} of the window's span", Ink.DIM)
