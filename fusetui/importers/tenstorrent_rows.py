"""Operations of a Tenstorrent report on one time axis, and the contract rows they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT, Columns, Section
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_REALS: Final = (
    "host_start", "host_end", "fw_start", "fw_end", "fw_ns", "kernel_ns", "gap_ns", "cores", "core_max", "core_mean",
    "device", "trace", "session",
)  # fmt: skip
OPERATION: Final = np.dtype([("name", "i4"), ("operands", "i4"), ("signpost", "?"), *((name, "f8") for name in _REALS)])
COUNTERS: Final = (
    ("op to op latency", "ns"),
    ("core imbalance", None),
    ("cores used", None),
    ("padding factor", None),
)
_MANY_DEVICES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Placed:
    """Operations and signposts on the host's clock, ns from the first of them; every column (rows,).

    at, end     begin and end; equal for signposts
    on_device   whether it is an operation on a device
    rows        the report's own columns
    clocks_mhz  (device, clock) as the report's cycles and durations tell
    """

    at: Ints
    end: Ints
    on_device: Bools
    rows: npt.NDArray[Any]
    clocks_mhz: list[tuple[int, int]]
    notes: list[str]


def placed(rows: npt.NDArray[Any]) -> Placed:
    """Places each device on the host's clock and leaves out what has no times."""
    ran = ~rows["signpost"] & np.isfinite(rows["fw_start"]) & (rows["fw_end"] >= rows["fw_start"])
    ran &= (rows["device"] >= 0) & (rows["device"] < _MANY_DEVICES)
    at, end = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    clocks, notes = [], []
    for device in np.unique(rows["device"][ran]).tolist():
        mine = np.flatnonzero(ran & (rows["device"] == device))
        mhz = _clock_mhz(rows[mine])
        if mhz == 0:
            notes.append(f"device {device:.0f} left out: its clock cannot be told from its durations")
            ran[mine] = False
            continue
        clocks.append((int(device), mhz))
        end[mine], took = _on_host_clock(rows[mine], mhz)
        at[mine] = end[mine] - took
    on_host = ~ran & np.isfinite(rows["host_start"]) & (rows["signpost"] | ~np.isfinite(rows["device"]))
    at[on_host] = rows["host_start"][on_host]
    ends = np.where(rows["signpost"] | ~(rows["host_end"] >= rows["host_start"]), rows["host_start"], rows["host_end"])
    end[on_host] = ends[on_host]
    kept = np.flatnonzero(ran | on_host)
    kept = kept[np.argsort(rows["host_start"][kept], kind="stable")]
    zero = np.floor(at[kept].min()) if len(kept) else 0.0
    took_ns = np.rint(end[kept] - at[kept]).astype(np.int64)
    ends = np.rint(end[kept] - zero).astype(np.int64)
    starts = ends - took_ns
    notes += _notes(rows, ran, len(kept))
    return Placed(starts, ends, ran[kept], rows[kept], clocks, notes)


def _clock_mhz(rows: npt.NDArray[Any]) -> int:
    """Cycles per microsecond from cycles and durations; 0 when they do not tell."""
    told = (rows["fw_ns"] > 0) & (rows["fw_end"] > rows["fw_start"])
    if not told.any():
        return 0
    return int(np.rint(np.median((rows["fw_end"] - rows["fw_start"])[told] / rows["fw_ns"][told]) * 1000))


def _on_host_clock(rows: npt.NDArray[Any], mhz: int) -> tuple[Floats, Floats]:
    """Ends of the kernels of one device, host ns, and what they took, ns.

    As early as no kernel starts before its launch call began. The firmware of a core begins an operation as soon as
    the core is idle, however long the operation is still to come, so it is the end that kernel and firmware share.
    """
    took: Floats = np.where(rows["kernel_ns"] >= 0, rows["kernel_ns"], (rows["fw_end"] - rows["fw_start"]) * 1000 / mhz)
    since: Floats = (rows["fw_end"] - rows["fw_end"].min()) * 1000 / mhz
    called = rows["host_start"]
    told = np.isfinite(called)
    origin = (called[told] - (since - took)[told]).max() if told.any() else 0.0
    return since + origin, took


def _notes(rows: npt.NDArray[Any], ran: Bools, kept: int) -> list[str]:
    notes = []
    operations = int((~rows["signpost"]).sum())
    if int(ran.sum()) < operations:
        notes.append(
            f"{int(ran.sum()):,} of {operations:,} operations have device times: the others ran on the host, or the "
            "profiler's buffer was full"
        )
    if kept < len(rows):
        notes.append(f"{len(rows) - kept:,} rows left out: no times")
    if not ran.any():
        return notes
    fw, kernel = rows["fw_ns"][ran], rows["kernel_ns"][ran]
    known = (fw > 0) & (kernel >= 0)
    if known.any():
        share = kernel[known].sum() / fw[known].sum()
        notes.append(f"operations last as long as their kernels, which are {share:.1%} of the firmware's time")
    notes.append("no queue wait: the report relates no device's clock to the host's; each is placed as early as can be")
    if not np.isfinite(rows["core_max"][ran]).any():
        notes.append("no times per core in this report; profile_log_device.csv of the same run has them")
    return notes


def sections(table: Placed, padding: Floats, names: int) -> list[Section]:
    """Executions, signposts and counters; `padding` per operand code, names from code `names` on are COUNTERS."""
    rows = table.rows
    runs, signs = np.flatnonzero(~rows["signpost"]), np.flatnonzero(rows["signpost"])
    node = _nodes(table)

    def executions(picked: Ints) -> Columns:
        which = runs[picked]
        part, device = rows[which], table.on_device[which]
        launched = part["host_end"] - part["host_start"]
        return {
            "name": part["name"].astype(np.int64), "start_ns": table.at[which], "end_ns": table.end[which],
            "launch_ns": _whole(np.where(device & (launched >= 0), launched, np.nan)),
            "device": _whole(np.where(device, part["device"], np.nan)),
            "shape": part["operands"].astype(np.int64), "node": node[which],
        }  # fmt: skip

    def marks(picked: Ints) -> Columns:
        at = table.at[signs[picked]]
        return {"name": rows["name"][signs[picked]].astype(np.int64), "start_ns": at, "end_ns": at}

    found = [Section(EXECUTION, table.end[runs], executions), Section(MARK, table.at[signs], marks)]
    counted = [_counter(table, number, names, values) for number, values in enumerate(_readings(table, padding))]
    return [section for section in [*found, *counted] if len(section.end)]


def _readings(table: Placed, padding: Floats) -> list[Floats]:
    """Values per row in the order of COUNTERS; NaN where there is none."""
    rows, measured = table.rows, (table.rows["core_mean"] > 0) & (table.rows["core_max"] >= table.rows["core_mean"])
    imbalance = np.full(len(rows), np.nan)
    imbalance[measured] = rows["core_max"][measured] / rows["core_mean"][measured] - 1
    return [np.where(table.on_device, v, np.nan) for v in (rows["gap_ns"], imbalance, rows["cores"])] + [
        np.where(table.on_device, padding[rows["operands"]], np.nan)
    ]


def _counter(table: Placed, number: int, names: int, values: Floats) -> Section:
    which = np.flatnonzero(np.isfinite(values))
    # The gap lies before the operation, all else is known at its end.
    at = (table.at if number == 0 else table.end)[which]

    def columns(picked: Ints) -> Columns:
        size = len(picked)
        return {
            "name": np.full(size, names + number), "start_ns": at[picked], "end_ns": at[picked],
            "value": values[which[picked]], "device": _whole(table.rows["device"][which[picked]]),
            "unit": np.full(size, number),
        }  # fmt: skip

    return Section(COUNTER, at, columns)


def _nodes(table: Placed) -> Ints:
    """Position in the replay of a trace, shape (rows,); ABSENT where an operation was not replayed."""
    rows, node = table.rows, np.full(len(table.at), ABSENT)
    replayed = np.flatnonzero(table.on_device & np.isfinite(rows["trace"]))
    if not len(replayed):
        return node
    keys = [table.at[replayed], *(np.nan_to_num(rows[key][replayed], nan=-1) for key in ("session", "trace", "device"))]
    order = np.lexsort(keys)
    new = np.ones(len(order), np.bool_)
    new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys[1:]], axis=0)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    node[replayed[order]] = np.arange(len(order)) - first
    return node


def _whole(values: Floats) -> Ints:
    known = np.isfinite(values)
    whole: Ints = np.where(known, np.rint(np.where(known, values, 0.0)), 0).astype(np.int64)
    whole[~known] = ABSENT
    return whole
