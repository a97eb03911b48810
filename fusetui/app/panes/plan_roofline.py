"""Where every group lies under the roofs of the device."""

from __future__ import annotations

from fusetui.accelerator.errors import AcceleratorError
from fusetui.analysis.planned import Planned
from fusetui.app.canvas import Canvas
from fusetui.app.charts.roofline import Point, Roofs, draw_roofline
from fusetui.app.palette import Ink, stream_ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.plan_pane import MODEL_NOTE, GroupListPane, group_label


class PlanRooflinePane(GroupListPane):
    TITLE = "Roofline · TFLOP/s"
    HELP = f"""Every group by its arithmetic per byte of device memory (across) and per second (up), both logarithmic.

●            modelled: FLOP / DRAM byte against FLOP / modelled time; ○: the same FLOP / measured median
rising roof  DRAM bandwidth × intensity; flat roof: matrix peak of the dtype; left of the ridge memory limits
Far below    launches, little parallelism, the shared cache, or vector arithmetic (its roof lies below the matrix peak)
Keys         up and down select a group, in all panes
{MODEL_NOTE}Blind to    groups that do no arithmetic, and traffic that the shared cache keeps from device memory."""

    def draw_plan(self, canvas: Canvas, plan: Planned) -> None:
        try:
            peak = plan.hardware.rate(plan.knobs.dtype)
        except AcceleratorError as error:
            draw_text(canvas, str(error), Ink.WARN)
            return
        cursor = self.cursor(self.items())
        points = []
        for i, row in enumerate(plan.rows):
            group = row.plan
            if not (group.flops > 0 and group.dram_bytes > 0 and group.predicted_ns > 0):
                continue
            intensity, label, chosen = group.flops / group.dram_bytes, group_label(i), i == cursor
            ink = stream_ink(i % 7)
            if row.measured is not None and row.measured.p50_ns > 0:
                ran = group.flops / row.measured.p50_ns * 1e9
                points.append(Point(label, intensity, ran, ink, measured=True, chosen=chosen))
            points.append(Point(label, intensity, group.flops / group.predicted_ns * 1e9, ink, chosen=chosen))
        roofs = Roofs(peak, plan.hardware.dram_bytes_per_s, plan.knobs.dtype)
        draw_roofline(canvas, points, roofs)
