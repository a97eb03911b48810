"""The graph chart: columns by distance, nothing overlaps at any size, wires join what they should."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.app.canvas import Canvas
from fusetui.app.charts.flow import Box, draw_flow, lay_out, levels
from fusetui.app.charts.roofline import Point, Roofs, draw_roofline
from fusetui.app.charts.wires import Wires
from fusetui.app.glyphs import SETS
from fusetui.app.palette import SELECTED, Ink

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]


def box(i: int, lines: int = 2) -> Box:
    return Box(f"g{i + 1}", "≈1.0 µs", tuple(f"op{i}.{n}" for n in range(lines)), Ink.STREAM_1)


def lines_of(canvas: Canvas) -> list[str]:
    return [canvas.line_text(y).rstrip() for y in range(canvas.height)]


def test_a_box_is_one_column_right_of_its_furthest_predecessor() -> None:
    assert levels(4, DIAMOND) == [0, 1, 1, 2]
    assert levels(4, [(0, 1), (1, 2), (0, 3)]) == [0, 1, 2, 1]


def test_a_diamond() -> None:
    canvas = Canvas(70, 9)
    draw_flow(canvas, [box(i, 1) for i in range(4)], DIAMOND, 1)
    assert lines_of(canvas) == [
        "",
        "                   ╭ g2 ─ ≈1.0 µs ╮",
        "                 ╭▸│ op1.0        │─╮",
        "╭ g1 ─ ≈1.0 µs ╮ │ ╰──────────────╯ │  ╭ g4 ─ ≈1.0 µs ╮",
        "│ op0.0        │─┤                  ╰┬▸│ op3.0        │",
        "╰──────────────╯ │ ╭ g3 ─ ≈1.0 µs ╮  │ ╰ ◂ g1 ────────╯",
        "                 ╰▸│ op2.0        │──╯",
        "                   ╰──────────────╯",
        "",
    ]
    chosen = [(y, x) for y in range(9) for x in range(70) if canvas.inks[y, x] == Ink.ACCENT + SELECTED]
    assert "".join(canvas.line_text(y)[x] for y, x in chosen) == " g2 "


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[tuple[int, int]]]:
    count = draw(st.integers(1, 24))
    pairs = [(a, b) for b in range(count) for a in range(max(0, b - 6), b)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=40, unique=True)) if pairs else []
    return [box(i, draw(st.integers(1, 9))) for i in range(count)], edges


@settings(deadline=None, max_examples=150)
@given(graph=graphs(), width=st.integers(1, 220), height=st.integers(1, 40), data=st.data())
def test_boxes_never_overlap_and_the_chosen_one_is_in_view(
    graph: tuple[list[Box], list[tuple[int, int]]], width: int, height: int, data: st.DataObject
) -> None:
    boxes, edges = graph
    chosen = data.draw(st.one_of(st.none(), st.integers(0, len(boxes) - 1)))
    flow = lay_out(boxes, edges, width, height, chosen)
    assert chosen is None or chosen in flow.places
    cells: set[tuple[int, int]] = set()
    for place in flow.places.values():
        assert place.x >= 0
        assert place.y >= 0
        assert place.x + place.width <= width
        assert place.y + place.height <= height
        own = {(x, y) for x in range(place.x, place.x + place.width) for y in range(place.y, place.y + place.height)}
        assert not own & cells
        cells |= own
    if (flow.left or flow.right) and height > 1:
        assert all(place.y + place.height < height for place in flow.places.values())
    assert sorted([*flow.left, *flow.places, *flow.right]) == list(range(len(boxes)))
    for glyphs in SETS.values():
        canvas = Canvas(width, height, glyphs)
        draw_flow(canvas, boxes, edges, chosen)
        assert not glyphs.ascii_only or all(line.isascii() for line in lines_of(canvas))


def test_what_is_out_of_sight_is_named() -> None:
    boxes, edges = [box(i) for i in range(12)], [(i, i + 1) for i in range(11)]
    canvas = Canvas(60, 8)
    draw_flow(canvas, boxes, edges, 5)
    last = lines_of(canvas)[-1]
    flow = lay_out(boxes, edges, 60, 8, 5)
    assert last.startswith("◂ g1 g2")
    assert last.endswith("g12 ▸")
    assert sorted([*flow.left, *flow.places, *flow.right]) == list(range(12))


def test_wires_join_where_they_meet() -> None:
    wires = Wires()
    wires.across(0, 6, 1)
    wires.down(3, 0, 2)
    wires.down(6, 1, 2)
    canvas = Canvas(7, 3)
    wires.draw(canvas, Ink.DIM)
    assert lines_of(canvas) == ["   │", "───┼──╮", "   │  │"]
    plain = Canvas(7, 3, SETS["ascii"])
    wires.draw(plain, Ink.DIM)
    assert lines_of(plain) == ["   |", "---+--+", "   |  |"]


ROOFS = Roofs(flops=1e15, bytes_per_s=2e12, peak="bf16")


def test_a_point_under_the_ridge_lies_on_the_slope() -> None:
    assert ROOFS.ridge == 500
    canvas = Canvas(80, 20)
    draw_roofline(canvas, [Point("g1", 10, 1e13), Point("g2", 2000, 9e14, chosen=True)], ROOFS)
    text = lines_of(canvas)
    slow = next(y for y, line in enumerate(text) if "●g1" in line)
    fast = next(y for y, line in enumerate(text) if "g2" in line)
    assert fast < slow
    assert text[fast].index("●") > text[slow].index("●")
    # Half of what memory allows at 10 FLOP/byte: a factor of two below the roof, one line of the twenty or so.
    column = text[slow].index("●")
    roof = next(y for y in range(20) if canvas.codes[y, column] not in (ord(" "), ord("─")))
    assert 0 < slow - roof <= 3
    assert any("DRAM 2 TB/s" in line for line in text)
    assert any("bf16 1e3 TFLOP/s" in line or "bf16 1000 TFLOP/s" in line for line in text)


def test_points_side_by_side_share_a_name() -> None:
    canvas = Canvas(80, 20)
    draw_roofline(canvas, [Point(f"g{i}", 100.0 + i / 10, 1e14) for i in (2, 3, 4, 9)], ROOFS)
    assert any("●g2-4 g9" in line for line in lines_of(canvas))


@settings(deadline=None, max_examples=60)
@given(
    points=st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e18)), max_size=12),
    width=st.integers(1, 120),
    height=st.integers(1, 40),
)
def test_a_roofline_of_anything_fits(points: list[tuple[float, float]], width: int, height: int) -> None:
    canvas = Canvas(width, height, SETS["ascii"])
    draw_roofline(canvas, [Point(f"g{i}", x, y) for i, (x, y) in enumerate(points)], ROOFS)
    assert all(line.isascii() for line in lines_of(canvas))
