"""rocprof-compute (Omniperf) tables (CSV): the dispatches of a profiled workload.

What becomes what
- `timestamps.csv`: dispatches are executions; where it has DispatchNs, that is enqueue_ns.
- `pmc_perf.csv` with one row per dispatch and counter and times: runs are executions, counts are counters.
- `pmc_perf.csv` with counters as columns is the same when it has times; counters of several passes share those of one.
- `sysinfo.csv` and `roofline.csv` are no work: refused alone; in a folder `sysinfo.csv` says what the hardware is.
Times count from the first row: they are those of a clock since boot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc

from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork
from fusetui.importers.lines import numbers
from fusetui.importers.rocprof_tables import Table, agents, columns_of, integers, queue_codes, take_counted, words
from fusetui.importers.sqlitefile import NULL
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "rocprof-compute table (CSV)"

_DISPATCH: Final = {"dispatch_id", "agent_id", "kernel_name", "lds_per_workgroup"}
_KINDS: Final = (
    ("counted", {*_DISPATCH, "counter_name", "counter_value", "start_timestamp", "end_timestamp"}),
    ("times", {*_DISPATCH, "start_timestamp", "end_timestamp"}),
    ("counters", _DISPATCH),
    ("system", {"workload_name", "gpu_arch"}),
    ("roofline", {"device", "hbmbw", "l2bw"}),
)
_REFUSED: Final = {
    "": ("no columns that are known", "is the table whole?"),
    "counters": ("hardware counters per dispatch without times", "open timestamps.csv of the same workload"),
    "system": ("the description of a machine, not of work", "open timestamps.csv of the same workload"),
    "roofline": ("measured peaks of a machine, not of work", "open timestamps.csv of the same workload"),
}
_COUNTER = re.compile(r"(?:sqc?|ta|td|tcp|tcc|spi|cpc|cpf|grbm|gl\w+)_\w")
_SCIENTIFIC: Final = r"[eE]\+?\d+\s*$"


def sniff(head: bytes) -> bool:
    """A table with the columns of one of rocprof-compute's."""
    columns = columns_of(head)
    return "kind" not in columns and bool(_kind_of(columns))


def _kind_of(columns: Collection[str]) -> str:
    kind = next((kind for kind, needed in _KINDS if needed <= set(columns)), "")
    return "wide" if kind == "times" and any(map(_COUNTER.match, columns)) else kind


def read(path: Path, memory_bytes: int) -> Capture:
    """Open one table. Raises TelemetryError when no work with times is in it."""
    kind = _kind_of(Table(path).columns)
    if kind in _REFUSED:
        what, remedy = _REFUSED[kind]
        raise TelemetryError(str(path), f"{NAME}: {what}", remedy)
    return read_together([path], memory_bytes)


def read_together(paths: Sequence[Path], memory_bytes: int) -> Capture:
    """Open the tables of one workload. Raises TelemetryError when they are of several, or have no times."""
    tables = [(table, _kind_of(table.columns)) for table in map(Table, paths)]
    _refuse_several([(table.path, kind) for table, kind in tables])
    found, notes, facts = DeviceWork(memory_bytes), list[str](), dict[str, str]()
    found.costs_known = False
    timed = any(kind == "times" for _, kind in tables)
    for table, kind in tables:
        if kind == "times" or (kind == "wide" and not timed):
            _take_times(table, found)
            if kind == "wide":
                notes.append("counters come from several passes of the kernels, the times are those of one")
        elif kind == "counted" and not timed:
            runs = take_counted(table, found, "")
            notes.append(f"kernels ran again for each pass of counters: {runs:,} runs are shown")
        elif kind == "system":
            facts |= _system(table)
        else:
            notes.append(f"{table.path.name} left out: {_REFUSED.get(kind, ('counters beside timestamps', ''))[0]}")
        if table.skipped:
            notes.append(f"{table.path.name}: lines that are no rows left out: {table.skipped:,}")
        if table.damage:
            notes.append(f"{table.path.name}: {table.damage}")
    if found.pieces and not found.calls:
        notes.append("no time of the launch in it, so no queue wait: rocprofv3 --hip-trace --kernel-trace records it")
    where = str(paths[0] if len(paths) == 1 else paths[0].parent)
    header = Header(source="rocprof-compute", clock="trace", hardware=facts)
    return found.capture(where, NAME, header, notes, base_ns=None, remedy="open timestamps.csv of the workload")


def _refuse_several(files: Sequence[tuple[Path, str]]) -> None:
    seen: dict[str, Path] = {}
    for path, kind in files:
        other = seen.setdefault(kind, path)
        if other != path:
            what = f"tables of several workloads ({other.name}, {path.name})"
            raise TelemetryError(str(path.parent), what, "name the table of one workload")


def _take_times(table: Table, found: DeviceWork) -> None:
    wanted = ("kernel_name", "agent_id", "queue_id", "dispatchns", "start_timestamp", "end_timestamp")
    for columns in table.chunks(*wanted, *sorted(filter(_COUNTER.match, table.columns))):
        if pc.any(pc.match_substring_regex(columns["start_timestamp"], _SCIENTIFIC)).as_py():
            what = f"{NAME}: times like 8.1097E+14 lost all but five digits"
            raise TelemetryError(str(table.path), what, "profile again: no time can be told from it")
        start, end = integers(columns, "start_timestamp"), integers(columns, "end_timestamp")
        dispatched = integers(columns, "dispatchns")
        known = dispatched != NULL
        number = np.arange(1, len(start) + 1) + found.pieces + found.left_out.total()
        texts, index = words(columns["kernel_name"])
        names = [text.removesuffix(" [clone .kd]").removesuffix(" (.kd)") for text in texts]
        found.add_work(
            start,
            end,
            correlation=np.where(known, number, 0),
            device=agents(columns, "agent_id"),
            stream=queue_codes(found, columns, ""),
            name=found.names.codes(names)[index],
        )
        found.add_calls(dispatched[known], dispatched[known], correlation=number[known])
        for counter in filter(_COUNTER.match, columns):
            name = np.repeat(found.names.codes([table.columns[counter]]), len(end))
            found.add_readings(end, numbers(columns[counter]), name=name, unit=-1, device=agents(columns, "agent_id"))


def _system(table: Table) -> dict[str, str]:
    facts: dict[str, str] = {}
    for columns in table.chunks("gpu_model", "gpu_arch", "cu_per_gpu", "max_sclk", "hbm_bw"):
        for name, column in columns.items():
            if len(column) and (text := column[0].as_py()):
                facts[name] = safe_text(text, 100)
    return facts
