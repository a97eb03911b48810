"""The measures that rules may name, and the units their limits come in.

p50(F) … p99.9(F)   nearest-rank quantile       mean(F) min(F) max(F) sum(F)
                    F: latency queue_wait service launch (durations), dram_bytes sram_bytes (sizes), value (counters)
count(K) rate(K)    K: requests executions marks open recompiles; without K: what latency is of. rate is per second
share(M)            M: planned adapted fallback, of executions that carry a mapping; hit = share(planned)
padding             tokens that ran over tokens asked for
busy                share of the span in which anything ran
imbalance fairness  λ = max/mean - 1 of busy time over cores; Jain's index over backlogged streams
burst               most DRAM bytes in any 100 µs, over what the mean demand while busy would move in it
depth               time-weighted mean of the queue
stall exposed       time in recompiles; launch overhead the device saw
drift accuracy      population stability index of shapes; mapping accuracy
changes             confirmed changes of p95 upwards within the trace
change(MEASURE)     against the baseline: after/before - 1 (`compare` only)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from fusetui.analysis.expression.lexer import DURATIONS, SIZES, Cursor, Token
from fusetui.telemetry.text import safe_text

Kind = Literal["duration", "size", "share", "number"]

DURATION_FIELDS: Final = ("latency", "queue_wait", "service", "launch")
SIZE_FIELDS: Final = ("dram_bytes", "sram_bytes")
COUNTED: Final = ("requests", "executions", "marks", "open", "recompiles")
MAPPED: Final = ("planned", "adapted", "fallback")
STATISTICS: Final = ("mean", "min", "max", "sum")
PLAIN: Final[dict[str, Kind]] = {
    "hit": "share", "padding": "number", "busy": "share", "imbalance": "number", "fairness": "number",
    "burst": "number", "depth": "number", "stall": "duration", "exposed": "duration", "drift": "number",
    "accuracy": "share", "changes": "number",
}  # fmt: skip
BETTER_HIGH: Final = frozenset({"rate", "count", "hit", "busy", "fairness", "accuracy"})


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure as named: aggregate of field `of`; q for quantiles; change: against the baseline."""

    aggregate: str
    of: str = ""
    q: float | None = None
    change: bool = False

    @property
    def name(self) -> str:
        """As one would write it."""
        inner = f"{self.aggregate}({self.of})" if self.of else self.aggregate
        return f"change({inner})" if self.change else inner

    @property
    def kind(self) -> Kind:
        """What its values are, of a change: those of what changes."""
        if self.aggregate in PLAIN:
            return PLAIN[self.aggregate]
        if self.aggregate == "share":
            return "share"
        if self.aggregate in ("count", "rate"):
            return "number"
        return "duration" if self.of in DURATION_FIELDS else "size" if self.of in SIZE_FIELDS else "number"


def parse_measure(cursor: Cursor) -> Measure:
    """The measure that begins here. Raises ExpressionError."""
    word = cursor.take()
    name = word.text.lower() if word.kind == "word" else ""
    if name == "change" and cursor.is_bracket("("):
        cursor.take()
        if cursor.is_word("change"):
            raise cursor.error("a change of a change is nothing")
        inner = parse_measure(cursor)
        cursor.close()
        return Measure(inner.aggregate, inner.of, inner.q, change=True)
    if name in PLAIN:
        return Measure(name)
    q = _quantile(name)
    if q is not None or name in STATISTICS:
        return Measure(name, _argument(cursor, name, (*DURATION_FIELDS, *SIZE_FIELDS, "value")), q)
    if name == "share":
        return Measure(name, _argument(cursor, name, MAPPED))
    if name in ("count", "rate"):
        return Measure(name, _argument(cursor, name, COUNTED) if cursor.is_bracket("(") else "")
    every = "p50…p99.9(latency) mean() max() min() sum() count rate share() change() " + " ".join(PLAIN)
    raise cursor.error(f"no measure {safe_text(word.text, 40)}; there are: {every}", word)


def parse_limit(cursor: Cursor, measure: Measure) -> float:
    """The limit that stands here, in ns, bytes, shares of 1 or as it is. Raises ExpressionError."""
    value = cursor.take()
    if value.kind != "number":
        raise cursor.error("expected a number, like 5ms, 64MiB or 10%", value)
    number = float(value.text)
    if measure.change or measure.kind == "share":
        if value.unit not in ("", "%"):
            raise cursor.error("a share is a number or has the unit %", value)
        return number / 100.0 if value.unit == "%" else number
    if measure.kind == "duration":
        return number * _unit(cursor, value, DURATIONS, "a duration needs a unit: ns us ms s")
    if measure.kind == "size":
        return number * _unit(cursor, value, SIZES, "a size needs a unit: B kB MB GB KiB MiB GiB")
    if value.unit and not (measure.aggregate == "rate" and value.unit == "/s"):
        raise cursor.error(f"{measure.name} has no unit", value)
    return number


def _unit(cursor: Cursor, value: Token, units: dict[str, int], what: str) -> int:
    if value.unit not in units and float(value.text) != 0.0:
        raise cursor.error(what, value)
    return units.get(value.unit, 1)


def _argument(cursor: Cursor, name: str, allowed: tuple[str, ...]) -> str:
    if not cursor.is_bracket("("):
        raise cursor.error(f"{name} needs what it is of: {name}({allowed[0]})")
    cursor.take()
    of = cursor.take()
    found = {"wait": "queue_wait"}.get(of.text.lower(), of.text.lower())
    if of.kind != "word" or found not in allowed:
        raise cursor.error(f"expected one of: {' '.join(allowed)}", of)
    cursor.close()
    return found


def _quantile(name: str) -> float | None:
    digits = name[1:]
    if not name.startswith("p") or not digits.replace(".", "", 1).isascii() or not digits[:1].isdigit():
        return None
    if digits == "999":
        return 0.999
    try:
        percent = float(digits)
    except ValueError:
        return None
    return round(percent / 100.0, 9) if 0.0 < percent < 100.0 else None
