"""Counters read as an on-call engineer does: which are stale, lo and hi as one bracket, what runs and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fusetui.analysis.snapshot import CounterRow, Snapshot
from fusetui.app import fmt
from fusetui.app.charts.resample import Floats

RUNNING: Final = ("requests running", "requests scheduled")
WAITING: Final = ("requests waiting",)
END_TO_END: Final = ("e2e", "request duration")
_SECONDS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_LO, _HI, _N = " lo", " hi", " n"
_KEPT: Final = 2
"""Of so many snapshots what was worked out is kept: the one shown and the one to compare with."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One line: a counter, or the bracket that a quantile lies in.

    rank  0 requests in flight, 1 brackets, 2 rates, 3 shares, 4 others
    row   the counter, or the lower bound; high: the upper bound, None in the last bucket
    n     observations behind a bracket, None: not told
    """

    name: str
    device: str
    rank: int
    row: CounterRow
    high: CounterRow | None = None
    n: float | None = None

    @property
    def stale(self) -> bool:
        """Nothing came lately."""
        return self.row.stale

    @property
    def text(self) -> str:
        """The value, a bracket `[100 ms, 250 ms]`, or from the last bucket on `≥ 5.00 s`; "" when stale."""
        if self.row.stale:
            return ""
        return bracket(self.row, self.high) if self.rank == 1 else value_text(self.row.last, self.row.unit).strip()

    @property
    def by_slot(self) -> Floats:
        """Its shape [S], of a bracket that of the upper bound."""
        return (self.high or self.row).by_slot


_newest: list[tuple[Sequence[CounterRow], tuple[Reading, ...]]] = []


def readings(snapshot: Snapshot) -> tuple[Reading, ...]:
    """The counters, the most telling first; lo and hi put together, and `n` beside them.

    Put together once for the counters of a snapshot: of hundreds a frame asks for the same several times.
    """
    rows = snapshot.counter_rows
    for of, found in tuple(_newest):
        if of is rows:
            return found
    found = tuple(_readings(rows))
    _newest.insert(0, (rows, found))
    del _newest[_KEPT:]
    return found


def _readings(of: Sequence[CounterRow]) -> list[Reading]:
    rows = {(row.name, row.device): row for row in of}
    found = []
    for (name, device), row in rows.items():
        base = name.removesuffix(_LO)
        if name.endswith((_HI, _N)) and _bracketed(name, device, rows):
            continue
        if name.endswith(_LO):
            hi = rows.get((f"{base}{_HI}", device))
            hi = None if hi is not None and hi.stale else hi
            n = rows.get((f"{base.rpartition(' ')[0]}{_N}", device))
            found.append(Reading(base, device, 1, row, hi, None if n is None else n.last))
        else:
            found.append(Reading(name, device, _rank(row), row))
    return sorted(found, key=lambda one: (one.rank, _order(one.name), one.name, one.device))


def _bracketed(name: str, device: str, rows: dict[tuple[str, str], CounterRow]) -> bool:
    """Whether it is told beside a lower bound."""
    if name.endswith(_HI):
        return (f"{name.removesuffix(_HI)}{_LO}", device) in rows
    base = name.removesuffix(_N)
    return any((f"{base} {q}{_LO}", device) in rows for q in ("p50", "p95", "p99"))


def bracket(low: CounterRow, high: CounterRow | None) -> str:
    """`[100 ms, 250 ms]`, or in the last bucket `≥ 5.00 s`."""
    text = value_text(low.last, low.unit).strip() if low.last else "0"
    return f"≥ {text}" if high is None else f"[{text}, {value_text(high.last, high.unit).strip()}]"


def _rank(row: CounterRow) -> int:
    if row.name.startswith("requests") and not row.unit:
        return 0
    return 2 if row.unit.endswith("/s") else 3 if row.unit in ("%", "percent") else 4


def _order(name: str) -> int:
    """Of brackets p99 first, end to end before its parts."""
    tails = {"p99": 0, "p95": 1, "p50": 2}
    return tails.get(name.rpartition(" ")[2], 3) * 2 + (not name.startswith(END_TO_END))


def latest(snapshot: Snapshot, names: Sequence[str]) -> float | None:
    """The sum over devices of the first of these counters that is there and not stale."""
    for name in names:
        values = [row.last for row in snapshot.counter_rows if row.name == name and not row.stale]
        if values:
            return float(sum(values))
    return None


def only_counters(snapshot: Snapshot) -> bool:
    """Whether counters are all that the window has: no work was recorded."""
    return not snapshot.executions and not snapshot.requests and bool(snapshot.counter_rows)


def in_words(snapshot: Snapshot) -> str:
    """For line two: `counters only: 12 running, 3 waiting; e2e p99 [1.00 s, 2.50 s], n 340`."""
    parts = [
        f"{fmt.count(value).strip()} {word}"
        for word, names in (("running", RUNNING), ("waiting", WAITING))
        if (value := latest(snapshot, names)) is not None
    ]
    found = [", ".join(parts)] if parts else []
    tail = next((one for one in readings(snapshot) if one.rank == 1 and one.text), None)
    if tail is not None:
        n = "" if tail.n is None else f", n {fmt.count(tail.n).strip()}"
        found.append(f"{tail.name} {tail.text}{n}")
    if not found:
        found = [f"{one.name} {one.device} {one.text}".replace("  ", " ") for one in readings(snapshot)[:3] if one.text]
    return f"counters only: {'; '.join(found)}" if found else "counters only"


def value_text(value: float, unit: str) -> str:
    """A counter value in 9 cells, in the form its unit is read in."""
    if unit in ("B", "bytes"):
        return f"{fmt.size(value)}  "
    if unit in ("B/s", "bytes/s"):
        return f"{fmt.size(value)}/s"
    if unit in _SECONDS:
        return f"{fmt.duration(value * _SECONDS[unit])}  "
    if unit in ("%", "percent"):
        return f"{fmt.number(value)} %   "
    return f"{fmt.count(value)}{fmt.fit(unit, 4)}"
