"""A TOML table read key by key; what nobody asked for is an error that names the nearest known key."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from fusetui.accelerator.errors import AcceleratorError

MAX_BYTES = 1 << 20


class ScenarioError(AcceleratorError):
    """A scenario that cannot be read, or that says something impossible."""


class Table:
    """One table of a file. Every getter raises ScenarioError naming file and key; `done` refuses unknown keys."""

    def __init__(self, where: str, values: dict[str, Any], path: str = "") -> None:
        self.where = where
        self._values = values
        self._path = path
        self._known: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Table:
        """The top of a TOML file."""
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise ScenarioError(str(path), "over 1 MiB is no scenario")
            return cls(str(path), tomllib.loads(data.decode()))
        except OSError as error:
            raise ScenarioError(str(path), f"cannot be read ({error.strerror})") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise ScenarioError(str(path), f"cannot be read as TOML: {error}") from None

    def fail(self, key: str, problem: str, remedy: str = "") -> NoReturn:
        """Raise for a key of this table."""
        raise ScenarioError(self.where, f"key {self._path}{key}: {problem}", remedy)

    def has(self, key: str) -> bool:
        """Whether the key is given; asking makes it known."""
        self._known.append(key)
        return key in self._values

    def text(self, key: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            self.fail(key, f"must be text, not {value!r}")
        if choices and value not in choices:
            near = get_close_matches(value, choices, 1)
            self.fail(
                key, f"{value!r} is not known", f"did you mean {near[0]}?" if near else f"one of {', '.join(choices)}"
            )
        return value

    def number(self, key: str, default: float | None = None, *, low: float, high: float = 1e12) -> float:
        return self._checked(key, self._get(key, default), low, high)

    def whole(self, key: str, default: int | None = None, *, low: int, high: int = 1 << 31) -> int:
        value = self._checked(key, self._get(key, default), low, high)
        if value != int(value):
            self.fail(key, f"must be a whole number, not {value!r}")
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"must be true or false, not {value!r}")
        return value

    def numbers(self, key: str, default: list[float] | None = None, *, low: float, high: float = 1e12) -> list[float]:
        value = self._get(key, default)
        if not isinstance(value, list) or len(value) > 10_000:
            self.fail(key, f"must be a list of numbers, not {value!r:.80}")
        return [self._checked(key, item, low, high) for item in value]

    def wholes(self, key: str, default: list[float] | None = None, *, low: int, high: int = 1 << 31) -> tuple[int, ...]:
        values = self.numbers(key, default, low=low, high=high)
        if any(value != int(value) for value in values):
            self.fail(key, "must be a list of whole numbers")
        return tuple(int(value) for value in values)

    def table(self, key: str) -> Table:
        """A table under this one; an empty one when it is not given."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            self.fail(key, f"must be a table, not {value!r:.80}")
        return Table(self.where, value, f"{self._path}{key}.")

    def tables(self, key: str, most: int = 64) -> list[Table]:
        """A list of tables; none when it is not given."""
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(key, f"must be a list of tables: write [[{key}]]")
        if len(value) > most:
            self.fail(key, f"{len(value)} of them", f"at most {most}")
        return [Table(self.where, item, f"{self._path}{key}[{i}].") for i, item in enumerate(value)]

    def items(self) -> dict[str, Any]:
        """Everything, for tables whose keys are another's business."""
        self._known += self._values
        return self._values

    def done(self) -> None:
        """Refuse what no getter asked for."""
        for key in self._values:
            if key not in self._known:
                near = get_close_matches(key, self._known, 1, 0.5)
                self.fail(key, "not known", f"did you mean {near[0]}?" if near else f"one of {', '.join(self._known)}")

    def _get(self, key: str, default: Any) -> Any:
        if key not in self._known:
            self._known.append(key)
        if key in self._values:
            return self._values[key]
        if default is None:
            self.fail(key, "missing")
        return default

    def _checked(self, key: str, value: object, low: float, high: float) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.fail(key, f"must be a number, not {value!r:.80}")
        if not low <= value <= high:
            self.fail(key, f"{value:g} is not between {low:g} and {high:g}")
        return float(value)
