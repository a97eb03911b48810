"""Colours from theme variables, with fallbacks that suit the ground."""

from __future__ import annotations

from rich.color import ColorType
from rich.style import Style

from fusetui.app.palette import DEFAULT, SELECTED, STEPS, Ink, Palette, stream_ink


def hex_of(style: Style) -> str:
    assert style.color is not None
    return style.color.get_truecolor().hex


def test_theme_variables_decide_then_the_theme_itself_then_the_fallback() -> None:
    palette = Palette.from_variables(
        {
            "fusetui-ok": "#010203",
            "fusetui-stream-2": "#040506",
            "fusetui-heat-8": "not a colour",
            "warning": "#0a0b0c",
            "foreground": "#eeeeee",
        }
    )
    assert hex_of(palette.ok) == "#010203"
    assert hex_of(palette.streams[1]) == "#040506"
    assert hex_of(palette.warn) == "#0a0b0c"
    assert hex_of(palette.fg) == "#eeeeee"
    assert hex_of(palette.heat[7]) == hex_of(DEFAULT.heat[7])


def test_a_light_ground_has_its_own_fallbacks() -> None:
    light = Palette.from_variables({"background": "#ffffff"})
    assert hex_of(light.fg) != hex_of(DEFAULT.fg)
    assert hex_of(light.fg) < "#555555"


def test_heat_lies_on_a_ground_of_its_own_colour_but_not_with_sixteen_colours() -> None:
    grounds = {style.bgcolor for style in DEFAULT.heat}
    assert len(grounds) == STEPS
    assert DEFAULT.bg.bgcolor not in grounds
    ansi = Palette.from_variables({f"fusetui-heat-{i + 1}": "ansi_blue" for i in range(STEPS)})
    assert ansi.heat[0].bgcolor is None
    assert ansi.heat[0].color is not None
    assert ansi.heat[0].color.type is ColorType.STANDARD


def test_every_ink_has_a_style_and_the_cursor_is_reversed() -> None:
    assert len(DEFAULT.styles) == 2 * SELECTED
    for ink in (*Ink, Ink.STREAM_1 + 7, Ink.HEAT_1 + 7):
        assert DEFAULT.styles[ink + SELECTED].reverse
        assert not DEFAULT.styles[ink].reverse
    assert len({DEFAULT.styles[ink] for ink in range(24)}) == 24


def test_streams_beyond_the_eighth_share_its_colour() -> None:
    assert [stream_ink(i) for i in (0, 6, 7, 8, 99)] == [8, 14, 15, 15, 15]
