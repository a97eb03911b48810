"""The user's own keys, from keys.toml: action id = key, "key,key" or a list. What would lock anyone out is refused."""

from __future__ import annotations

import os
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.keys import KEY_NAME_REPLACEMENTS

from fusetui.app.actions import NEVER_LOST, Action, shown
from fusetui.telemetry.text import safe_text

MAX_KEYMAP_BYTES = 64 << 10


def keymap_path() -> Path:
    """Where the user's keys are."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "fusetui" / "keys.toml"


def load_keymap(path: Path, actions: Sequence[Action]) -> tuple[tuple[Action, ...], list[str]]:
    """The actions with the user's keys, and one line for everything refused; no file is no problem."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_KEYMAP_BYTES + 1)
        if len(raw) > MAX_KEYMAP_BYTES:
            return tuple(actions), ["keys.toml: over 64 kB, not a keymap"]
        table = tomllib.loads(raw.decode())
    except FileNotFoundError:
        return tuple(actions), []
    except OSError as error:
        return tuple(actions), [f"keys.toml: {error.strerror}"]
    except (ValueError, RecursionError) as error:
        return tuple(actions), [safe_text(f"keys.toml: not TOML ({error})", 300)]
    return apply_keymap(_flat(table), actions)


def apply_keymap(wanted: Mapping[str, Any], actions: Sequence[Action]) -> tuple[tuple[Action, ...], list[str]]:
    """`actions` with other keys, id -> key(s), and why some were refused.

    An override is refused when its id is unknown, it is no key, it leaves quit or help without a key, or the key is
    taken: the action then keeps its own.
    """
    problems: list[str] = []
    known = {action.id: action for action in actions}
    overrides: dict[str, tuple[str, ...]] = {}
    for name, value in wanted.items():
        keys = _keys(value)
        if name not in known:
            problems.append(f"keys.toml: no action {safe_text(name, 60)}")
        elif keys is None:
            problems.append(f"keys.toml: {name} is not a key or a list of keys")
        elif not keys and name in NEVER_LOST:
            problems.append(f"keys.toml: {name} needs a key")
        else:
            overrides[name] = keys
    while (clash := _clash(known, overrides)) is not None:
        name, other, key = clash
        problems.append(f"keys.toml: {name} keeps its keys, {shown(key)} is {other}")
        del overrides[name]
    return tuple(replace(a, keys=overrides[a.id]) if a.id in overrides else a for a in actions), problems


def _clash(known: Mapping[str, Action], overrides: Mapping[str, tuple[str, ...]]) -> tuple[str, str, str] | None:
    """An override to give up: (its id, the action that has the key, the key)."""
    owner: dict[str, str] = {}
    # Actions that keep their own keys come first, and quit and help before all: who comes later gives way.
    order = sorted(known, key=lambda name: (name in overrides, name not in NEVER_LOST))
    for name in order:
        for key in overrides.get(name, known[name].keys):
            other = owner.setdefault(key, name)
            if other != name:
                return (name, other, key) if name in overrides else (other, name, key)
    return None


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`[view] pause = "p"` and `"view.pause" = "p"` are the same."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and not prefix:
            flat.update(_flat(value, f"{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _keys(value: object) -> tuple[str, ...] | None:
    """Textual's names of the keys; None when it is not one."""
    names = value.split(",") if isinstance(value, str) and value != "," else value
    names = [","] if value == "," else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    keys = [name if name == " " else name.strip() for name in names]
    keys = [key for key in keys if key]
    if any(len(key) > 40 or not key.isprintable() for key in keys):
        return None
    return tuple(dict.fromkeys(_key_name(key) for key in keys))


def _key_name(key: str) -> str:
    if len(key) > 1:
        return key.lower()
    if key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)
