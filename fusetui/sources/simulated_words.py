"""The words of a simulation and the codes that stand for them while rows are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.accelerator.runtime.outcome import Jobs
from fusetui.accelerator.scenario.build import Run
from fusetui.sources.words import coded, coded_texts

Ints = npt.NDArray[np.int64]

NO_PLAN: Final = -1
_BITS: Final = 31
_LOW: Final = (1 << _BITS) - 1
COUNTERS: Final = (
    ("DRAM traffic", "GB/s"),
    ("peak DRAM demand", "×"),
    ("waiting requests", ""),
    ("running requests", ""),
)
"""Name and unit; the peak is what kernels asked for at once, as a multiple of the device's bandwidth."""


class RunWords:
    """What a run calls its things.

    eager   by table: whether its plans launch every kernel by itself
    sizes   by table: the parameter its size is
    """

    def __init__(self, run: Run) -> None:
        scenario = run.scenario
        models = [scenario.model(stream.model) for stream in scenario.streams]
        if scenario.decode:
            models.append(scenario.model(scenario.decode))
        tables = [run.planned[model.name].table for model in models]
        self.models = models
        self.eager = np.array([model.launch == "eager" for model in models], np.bool_)
        self.sizes = [model.size for model in models]
        self.streams = [stream.name for stream in scenario.streams]
        self.has_output = any(
            not stream.mixes or any(any(mix.output) for mix in stream.mixes) for stream in scenario.streams
        )
        paths = [path for table in tables for path in (table.plan, table.fallback)]
        self._kernels = list(dict.fromkeys(name for path in paths for name in path.names))
        self.marks = list(dict.fromkeys(mark.name for mark in scenario.marks))
        self.names = [*self._kernels, *self.streams, *(name for name, _ in COUNTERS), *self.marks]
        self._job_at = len(self.names)
        self.names += [table.name for table in tables]
        self._tables = tables
        self.units = list(dict.fromkeys(unit for _, unit in COUNTERS if unit))
        self._layers = np.array([model.layers for model in models], np.int64)

    def kernel_name(self, code: Ints) -> Ints:
        """Of the code an execution has for its kernel: both lists are made in the same order."""
        return code

    def job_name(self, table: Ints) -> Ints:
        """Name codes of jobs told as a whole: they are called as what they run."""
        return self._job_at + table

    def job_bytes(self, table: Ints, rows: Ints, generic: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Traffic of whole jobs, (jobs,) bytes: that of the known size which holds their rows."""
        moved = np.zeros(len(table))
        for i, plans in enumerate(self._tables):
            for path, chosen in ((plans.plan, (table == i) & ~generic), (plans.fallback, (table == i) & generic)):
                moved[chosen] = np.add.reduceat(path.dram_bytes, path.first[:-1])[path.knot(rows[chosen])]
        return moved

    def kernels_of(self, jobs: Jobs) -> int:
        """How many kernels jobs are made of, about: at most, whatever path they took."""
        most = np.array([max(int(np.diff(p.first).max()) for p in (t.plan, t.fallback)) for t in self._tables])
        return int(most[jobs.table].sum())

    def stream_name(self, stream: Ints) -> Ints:
        """Name codes of requests: they are called as their stream."""
        return len(self._kernels) + stream

    def counter_name(self, counter: int) -> int:
        """Name code of a counter."""
        return len(self._kernels) + len(self.streams) + counter

    def mark_name(self, name: str) -> int:
        """Name code of a mark."""
        return self.counter_name(len(COUNTERS)) + self.marks.index(name)

    def groups_in_layer(self, jobs: Jobs, job: Ints) -> Ints:
        """(executions,) kernels of one layer of the job each belongs to: groups count anew in every layer."""
        per_job = np.bincount(job, minlength=len(jobs))
        layer: Ints = np.maximum(per_job // self._layers[jobs.table], 1)[job]
        return layer

    def plan_name(self, table: int, size: int) -> str:
        """What the plan of a table's model for a size is called in rows and header."""
        model = self.models[table]
        return f"{model.name} {model.policy} {size}" if model.captured else f"{model.name} {model.policy}"

    def plans(self, keys: Ints) -> pa.DictionaryArray:
        """The column of plans for the keys of `plan_key`."""
        return _words(keys, lambda key: self.plan_name(key >> _BITS, key & _LOW))

    def shapes(self, keys: Ints) -> pa.DictionaryArray:
        """The column of shapes for the keys of `request_shape` and `work_shape`."""
        return _words(keys, self._shape)

    def _shape(self, key: int) -> str:
        rows, low = key >> _BITS, key & _LOW
        if low < len(self.sizes):
            return f"{self.sizes[low]}={rows}"
        output = low - len(self.sizes)
        return f"tokens={rows} output={output}" if self.has_output else f"tokens={rows}"


def plan_key(table: Ints, bucket: Ints, words: RunWords) -> Ints:
    """Table and size as one number; where any size has a plan it has one name."""
    captured = np.array([model.captured for model in words.models], np.bool_)
    return (table << _BITS) + np.where(captured[table], bucket, 0)


def request_shape(tokens: Ints, output: Ints, words: RunWords) -> Ints:
    """The shape a request came with, as one number."""
    return (np.minimum(tokens, _LOW) << _BITS) + len(words.sizes) + np.minimum(output, _LOW - len(words.sizes))


def work_shape(rows: Ints, table: Ints) -> Ints:
    """The size a job came with, as one number."""
    return (np.minimum(rows, _LOW) << _BITS) + table


def _words(keys: Ints, word: Callable[[int], str]) -> pa.DictionaryArray:
    known = keys >= 0
    if not known.any():
        return coded_texts([None] * len(keys))
    unique, codes = np.unique(keys[known], return_inverse=True)
    places = np.full(len(keys), -1, np.int32)
    places[known] = codes
    return coded(places, [word(int(key)) for key in unique.tolist()])
