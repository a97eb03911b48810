"""Themes are TOML files: those that come with fusetui, then the user's. A broken one is reported, not fatal."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from fusetui.data import data_dir
from fusetui.telemetry.text import safe_text

DEFAULT: Final = "dark"
MAX_THEME_BYTES: Final = 64 << 10

FALLBACKS: Final[dict[str, str]] = {
    "fusetui-ok": "#8fc27c",
    "fusetui-warn": "#e8b866",
    "fusetui-breach": "#f7768e",
    "fusetui-grid": "#566274",
    "fusetui-dim": "#8490a4",
    "fusetui-accent": "#7aa2f7",
    **{
        f"fusetui-stream-{number}": colour
        for number, colour in enumerate(
            ("#6cb6f5", "#e5a34a", "#4fc3a1", "#e6dc5a", "#8f9ff5", "#f08a5d", "#d794c6", "#a9b3c4"), 1
        )
    },
    **{
        f"fusetui-heat-{number}": colour
        for number, colour in enumerate(
            ("#233661", "#11537a", "#007186", "#068f8c", "#34ad87", "#7ac478", "#bfd667", "#ffe47e"), 1
        )
    },
}
"""Our own variables, and what they are under a theme that does not set them."""

_SETTINGS: Final = {"dark": bool, "ansi": bool, "luminosity_spread": float, "text_alpha": float}
_COLOURS: Final = frozenset(field.name for field in fields(Theme)) - {"name", "variables", *_SETTINGS}


class ThemeFileError(Exception):
    """A theme file that cannot be used; `str(error)` is one line that says where and why."""


@dataclass(frozen=True, slots=True)
class Themes:
    """The usable themes by name, in reading order, and one line for each file that is not usable."""

    usable: dict[str, Theme]
    problems: tuple[str, ...]


def user_folder() -> Path:
    """Where a user keeps own themes."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "fusetui" / "themes"


def load_themes() -> Themes:
    """Every theme file of both folders; a user's file replaces the packaged theme of the same name."""
    usable: dict[str, Theme] = {}
    problems: list[str] = []
    for folder in (data_dir("themes"), user_folder()):
        try:
            paths = sorted(folder.glob("*.toml"))
        except OSError as error:
            problems.append(safe_text(f"{folder}: {error.strerror}"))
            continue
        for path in paths:
            try:
                theme = read_theme(path)
            except ThemeFileError as error:
                problems.append(str(error))
            else:
                usable[theme.name] = theme
    return Themes({name: _complete(theme, usable) for name, theme in usable.items()}, tuple(problems))


def _complete(theme: Theme, usable: dict[str, Theme]) -> Theme:
    """The theme with every variable set: severities from its own colours, the rest from ours of the same lightness."""
    base = usable.get("dark" if theme.dark else "light")
    own = {
        "fusetui-ok": theme.success,
        "fusetui-warn": theme.warning,
        "fusetui-breach": theme.error,
        "fusetui-accent": theme.accent or theme.primary,
        "fusetui-dim": theme.secondary,
    }
    # Textual's own styles need more of an ANSI theme than colours.
    ansi = BUILTIN_THEMES["ansi-dark" if theme.dark else "ansi-light"].variables if theme.ansi else {}
    theme.variables = {
        **FALLBACKS,
        **(base.variables if base else {}),
        **ansi,
        **{name: colour for name, colour in own.items() if colour},
        **theme.variables,
    }
    return theme


def read_theme(path: Path) -> Theme:
    """One theme file. Raises ThemeFileError."""
    where = safe_text(path.name, 100)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_THEME_BYTES + 1)
        if len(raw) > MAX_THEME_BYTES:
            raise ThemeFileError(f"{where}: over 64 kB, not a theme")
        table = tomllib.loads(raw.decode())
    except OSError as error:
        raise ThemeFileError(f"{where}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ThemeFileError(safe_text(f"{where}: not TOML ({error})", 300)) from None
    return _theme(table, path.stem, where)


def _theme(table: dict[str, Any], stem: str, where: str) -> Theme:
    variables = table.pop("variables", {})
    if not isinstance(variables, dict):
        raise ThemeFileError(f"{where}: [variables] is not a table")
    name = table.pop("name", stem)
    if not isinstance(name, str) or not name:
        raise ThemeFileError(f"{where}: name is not a text")
    settings: dict[str, Any] = {}
    for key, value in table.items():
        if key in _COLOURS:
            settings[key] = _colour(value, key, where)
        elif key in _SETTINGS:
            settings[key] = _setting(value, key, where)
        else:
            raise ThemeFileError(f"{where}: unknown key {safe_text(key, 40)}")
    if "primary" not in settings:
        raise ThemeFileError(f"{where}: primary is missing")
    for key in variables:
        if key not in FALLBACKS:
            raise ThemeFileError(f"{where}: unknown variable {safe_text(key, 40)}")
    return Theme(
        name=safe_text(name, 40),
        variables={key: _colour(value, key, where) for key, value in variables.items()},
        **settings,
    )


def _colour(value: object, key: str, where: str) -> str:
    try:
        Color.parse(str(value))
    except ColorParseError:
        raise ThemeFileError(f"{where}: {key} is not a colour: {safe_text(str(value), 40)}") from None
    return str(value)


def _setting(value: object, key: str, where: str) -> bool | float:
    kind = _SETTINGS[key]
    if kind is bool and isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise ThemeFileError(f"{where}: {key} has to be {'true or false' if kind is bool else 'a number from 0 to 1'}")
