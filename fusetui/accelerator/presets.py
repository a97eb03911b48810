"""Hardware descriptions as TOML: the presets that ship, the user's own, and what `extends` means.

Looked up by name in `$XDG_CONFIG_HOME/fusetui/hardware`, then among the presets; a path names a file directly.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fusetui.accelerator.errors import HardwareError
from fusetui.accelerator.hardware import Hardware, LaunchCosts
from fusetui.accelerator.host import host_description

HOST: Final = "host"
_PRESETS: Final = Path(__file__).parent / "presets"
_KINDS: Final = ("gpu", "systolic", "cpu")
_RATES: Final = ("matrix_flops", "vector_flops")
_MAY_BE_ZERO: Final = ("registers_per_core", "max_threads_per_core", "l2_bytes", "l2_bytes_per_s")
_TYPICAL: Final = ("eta_matrix", "eta_dram", "eta_l2")
_LAUNCH: Final = tuple(f.name for f in dataclasses.fields(LaunchCosts))
_KEYS: Final = {f.name: f for f in dataclasses.fields(Hardware)}
_WHOLE: Final = frozenset(name for name, f in _KEYS.items() if f.type == "int")


def hardware_names() -> tuple[str, ...]:
    """Names `load_hardware` knows: presets, `host`, and the user's own files."""
    names = {HOST: HOST}
    for folder in (_PRESETS, _user_folder()):
        for path in sorted(folder.glob("*.toml")):
            names.setdefault(path.stem.lower(), _declared_name(path))
    return tuple(sorted(names.values(), key=str.lower))


def load_hardware(name_or_path: str) -> Hardware:
    """One device by name (any case), by path of a TOML file, or `host`. HardwareError names file and key."""
    where, table = _resolve(name_or_path, ())
    return _build(table, where)


def _resolve(name: str, seen: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    if name.lower() == HOST:
        return "this machine", host_description()
    path = _find(name, seen)
    where = str(path)
    if where in seen:
        raise HardwareError(where, "key extends: goes round in a circle")
    table = _read(path)
    base = table.pop("extends", None)
    if base is None:
        return where, table
    if not isinstance(base, str):
        raise HardwareError(where, "key extends: must be the name of a device")
    _, merged = _resolve(base, (*seen, where))
    own = {"name": path.stem} | table
    for key, value in own.items():
        known = merged.get(key)
        merged[key] = known | value if isinstance(known, dict) and isinstance(value, dict) else value
    return where, merged


def _find(name: str, seen: tuple[str, ...]) -> Path:
    if os.sep in name or name.endswith(".toml"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise HardwareError(name, "no such hardware file")
        return path
    for folder in (_user_folder(), _PRESETS):
        for path in sorted(folder.glob("*.toml")):
            if name.lower() in (path.stem.lower(), _declared_name(path).lower()) and str(path) not in seen:
                return path
    raise HardwareError("hardware", f"{name!r} is not known", f"one of {', '.join(hardware_names())}, or a .toml file")


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fusetui" / "hardware"


def _declared_name(path: Path) -> str:
    """What a file calls itself; a file that cannot be read goes by its own name until it is asked for."""
    try:
        name = _read(path).get("name")
    except HardwareError:
        return path.stem
    return name if isinstance(name, str) else path.stem


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HardwareError(str(path), f"cannot be read as TOML: {error}") from None


def _build(table: Mapping[str, Any], where: str) -> Hardware:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise HardwareError(where, f"key {key}: not known", f"one of {', '.join(_KEYS)}, extends")
        values[key] = _value(key, value, where)
    for key, field in _KEYS.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and key not in values:
            raise HardwareError(where, f"key {key}: missing", 'give it, or start with extends = "H100"')
    if "fp32" not in values["vector_flops"]:
        raise HardwareError(where, "key vector_flops.fp32: missing")
    if bool(values.get("l2_bytes")) != bool(values.get("l2_bytes_per_s")):
        raise HardwareError(where, "key l2_bytes_per_s: must be given with l2_bytes, and only then")
    return Hardware(**values)


def _value(key: str, value: Any, where: str) -> Any:
    if key in ("name", "title", "kind"):
        if not isinstance(value, str) or not value or (key == "kind" and value not in _KINDS):
            choice = f"one of {', '.join(_KINDS)}" if key == "kind" else "text"
            raise HardwareError(where, f"key {key}: must be {choice}, not {value!r}")
        return value
    if key in (*_RATES, "mma", "launch", "typical", "sources"):
        if not isinstance(value, dict) or (not value and key != "sources"):
            raise HardwareError(where, f"key {key}: must be a table with at least one entry")
        return _table(key, value, where)
    number = _number(key, value, where, zero=key in _MAY_BE_ZERO)
    if key in _WHOLE:
        if number != int(number):
            raise HardwareError(where, f"key {key}: must be a whole number, not {value!r}")
        return int(number)
    return number


def _table(key: str, value: Mapping[str, Any], where: str) -> Any:
    if key == "sources":
        return {k: str(v) for k, v in value.items()}
    if key == "mma":
        return {k: _shape(f"{key}.{k}", v, where) for k, v in value.items()}
    numbers = {k: _number(f"{key}.{k}", v, where, zero=key == "launch") for k, v in value.items()}
    if key == "typical" and not set(numbers) <= set(_TYPICAL):
        raise HardwareError(where, f"key typical.{min(set(numbers) - set(_TYPICAL))}: not known", ", ".join(_TYPICAL))
    if key != "launch":
        return numbers
    for name in (*numbers, *_LAUNCH):
        if name not in _LAUNCH or name not in numbers:
            problem = "not known" if name not in _LAUNCH else "missing"
            raise HardwareError(where, f"key launch.{name}: {problem}", f"it takes {', '.join(_LAUNCH)}")
    return LaunchCosts(**numbers)


def _shape(key: str, value: Any, where: str) -> tuple[int, int, int]:
    whole = isinstance(value, list) and len(value) == 3 and all(type(v) is int and v > 0 for v in value)
    if not whole:
        raise HardwareError(where, f"key {key}: must be [m, n, k] of positive whole numbers, not {value!r}")
    return (value[0], value[1], value[2])


def _number(key: str, value: Any, where: str, *, zero: bool) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (0 <= value < 1e18) or (value == 0 and not zero):
        least = "0 or more" if zero else "more than 0"
        raise HardwareError(where, f"key {key}: must be a number, {least}, not {value!r}")
    return float(value)
