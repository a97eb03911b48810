"""The schema gate: nothing that does not fit the contract goes further, and what does is canonical.

After the gate a batch has exactly the columns and types of `fusetui.telemetry.schema.SCHEMA`; its memory is
valid, its strings are safe to print, its floats finite or null, its times in order and within 2^62 ns. The
dictionaries of `kind` and `mapping` are exactly KINDS and MAPPINGS, so their codes are constants.

Accepted columns: integers (any width; also floats for non-time columns), floats, booleans, strings (plain, large,
view, or a dictionary of them), timestamps and durations (cast to ns). Optional columns may be missing, unknown
columns are ignored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.guard import DEFAULT_LIMITS, Limits
from fusetui.telemetry.schema import KINDS, MAPPINGS, REQUIRED, SCHEMA
from fusetui.telemetry.text import safe_text
from fusetui.telemetry.words import WordColumn, check_views, has_views, is_text

MAX_COLUMNS: Final = 256
MAX_NAME_CHARS: Final = 128
MAX_METADATA_BYTES: Final = 1 << 20
TIME_LIMIT: Final = 1 << 62
"""Times lie within +- this many ns, so that differences cannot overflow."""

GATE_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, MemoryError, LookupError, OverflowError)

_FIXED: Final = {"kind": KINDS, "mapping": MAPPINGS}
_POINTS: Final = ("enqueue_ns", "start_ns", "end_ns")
_POSITION: Final = {name: SCHEMA.get_field_index(name) for name in SCHEMA.names}

Convert = Callable[[pa.Array], pa.Array]


class Gate:
    """The gate for one input schema.

    metadata  the schema's own metadata
    fields    positions in the input schema of the columns to read; hand only these, in this order, to `conform`
    """

    def __init__(self, schema: pa.Schema, where: str, limits: Limits = DEFAULT_LIMITS) -> None:
        """Raises TelemetryError, naming the column, when the schema does not fit."""
        self._limits = limits
        self._nulls: tuple[int, dict[str, pa.Array]] = (-1, {})
        self.metadata: dict[bytes, bytes] | None = schema.metadata
        names = _checked_names(schema, where)
        missing = [name for name in REQUIRED if name not in names]
        if missing:
            raise TelemetryError(
                where, f"required columns are missing: {', '.join(missing)}", "see the telemetry contract"
            )
        wanted = [(number, name) for number, name in enumerate(names) if name in _POSITION]
        twice = sorted({name for _, name in wanted if names.count(name) > 1})
        if twice:
            raise TelemetryError(where, f"column {twice[0]!r} occurs twice")
        self.fields = [number for number, _ in wanted]
        self._names = [name for _, name in wanted]
        self._converts = {name: _conversion(schema.field(number), name, where) for number, name in wanted}
        self._column_of = {name: i for i, name in enumerate(self._names)}
        self._views = [i for i, (number, _) in enumerate(wanted) if has_views(schema.field(number).type)]

    def conform(self, batch: pa.RecordBatch, where: str) -> tuple[pa.RecordBatch, int]:
        """The batch in the contract's schema, and the number of rows dropped from it for impossible values.

        batch  with the columns of `fields`
        where  names the batch in errors, e.g. "capture.arrows batch 12"
        Errors: TelemetryError naming batch and column.
        """
        rows = batch.num_rows
        if rows > self._limits.rows:
            raise TelemetryError(
                where, f"{rows} rows are over the limit of {self._limits.rows}", "send smaller batches"
            )
        columns = batch.columns
        self._validate(batch, columns, where)
        arrays = []
        for name in _POSITION:
            at = self._column_of.get(name)
            if at is None or columns[at].null_count == rows:
                arrays.append(self._null_column(name, rows))
                continue
            try:
                arrays.append(self._converts[name](columns[at]))
            except GATE_ERRORS as error:
                raise TelemetryError(f"{where}, column {name!r}", str(error) or type(error).__name__) from None
        keep = _good_rows(arrays)
        result = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        if keep is None:
            return result, 0
        kept = result.filter(pa.array(keep))
        return kept, rows - kept.num_rows

    def _null_column(self, name: str, rows: int) -> pa.Array:
        if self._nulls[0] != rows:
            self._nulls = (rows, {})
        made = self._nulls[1].get(name)
        if made is None:
            made = self._nulls[1][name] = _nulls(name, rows)
        return made

    def _validate(self, batch: pa.RecordBatch, columns: list[pa.Array], where: str) -> None:
        for at in self._views:
            # Views may all show the same text: checking each one's UTF-8, as below, would take hours.
            try:
                columns[at].validate()
                check_views(columns[at])
            except GATE_ERRORS as error:
                raise TelemetryError(f"{where}, column {self._names[at]!r}", f"damaged values ({error})") from None
        try:
            batch.validate(full=True)
            size = batch.get_total_buffer_size()
        except GATE_ERRORS as error:
            raise TelemetryError(f"{where}{self._culprit(columns)}", f"damaged values ({error})") from None
        # Sliced batches share larger buffers, so the cheap size is only an upper bound.
        if size > self._limits.batch and batch.nbytes > self._limits.batch:
            raise TelemetryError(
                where, f"{batch.nbytes} bytes are over the limit of {self._limits.batch}", "send smaller batches"
            )

    def _culprit(self, columns: list[pa.Array]) -> str:
        for name, column in zip(self._names, columns, strict=False):
            try:
                column.validate(full=True)
            except GATE_ERRORS:
                return f", column {name!r}"
        return ""


def dropped_rows_note(where: str, dropped: int) -> str:
    """What to tell about rows that `conform` dropped."""
    return f"{where}: {dropped} rows left out: they end before they start, or lack a time, kind or name"


_local = threading.local()


def conform(
    batch: pa.RecordBatch, where: str, number: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[pa.RecordBatch, int]:
    """Schema gate, full validation and canonical form for one batch on its own; see `Gate.conform`.

    The gate of the last schema is kept per thread, with the dictionaries it has cleaned.
    """
    label = where if number is None else f"{where} batch {number}"
    last: tuple[pa.Schema, Limits, Gate] | None = getattr(_local, "last", None)
    if last is None or last[1] is not limits or not last[0].equals(batch.schema):
        last = (batch.schema, limits, Gate(batch.schema, label, limits))
        _local.last = last
    gate = last[2]
    if len(gate.fields) != batch.num_columns:
        batch = batch.select(gate.fields)
    return gate.conform(batch, label)


def _nulls(name: str, rows: int) -> pa.Array:
    kind = SCHEMA.field(name).type
    if name in _FIXED:
        return pa.DictionaryArray.from_arrays(pa.nulls(rows, kind.index_type), pa.array(_FIXED[name], pa.utf8()))
    return pa.nulls(rows, kind)


def _checked_names(schema: pa.Schema, where: str) -> list[str]:
    if len(schema) > MAX_COLUMNS:
        raise TelemetryError(where, f"{len(schema)} columns are over the limit of {MAX_COLUMNS}")
    if schema.metadata and sum(len(k) + len(v) for k, v in schema.metadata.items()) > MAX_METADATA_BYTES:
        raise TelemetryError(where, "schema metadata is over the 1 MiB limit")
    names = []
    for number in range(len(schema)):
        try:
            name = schema.field(number).name
        except UnicodeDecodeError:
            raise TelemetryError(where, f"the name of column {number} is not UTF-8") from None
        if len(name) > MAX_NAME_CHARS:
            raise TelemetryError(where, f"the name of column {number} has over {MAX_NAME_CHARS} characters")
        names.append(name)
    return names


def _conversion(field: pa.Field, name: str, where: str) -> Convert:
    """How the input column becomes the contract's."""
    target = SCHEMA.field(name).type
    source = field.type
    values = source.value_type if isinstance(source, pa.DictionaryType) else source
    if pa.types.is_null(source):
        return lambda array: _nulls(name, len(array))
    if isinstance(target, pa.DictionaryType):
        if is_text(values):
            return WordColumn(target, _FIXED.get(name)).convert
    elif pa.types.is_floating(target):
        if pa.types.is_integer(source) or pa.types.is_floating(source):
            return lambda array: _finite(array if array.type == target else array.cast(target, safe=False))
    elif source == target:
        return lambda array: array
    elif pa.types.is_integer(source):
        return lambda array: array.cast(target)
    elif pa.types.is_timestamp(source) or pa.types.is_duration(source):
        if name.endswith("_ns"):
            return _to_ns
    elif pa.types.is_floating(source) and not name.endswith("_ns"):
        # pandas keeps integers with gaps as floats; a time would lose its nanoseconds that way.
        return lambda array: _finite(array.cast(pa.float64())).cast(target)
    raise TelemetryError(
        where, f"column {name!r} has type {safe_text(str(source), 80)}, expected {target}", "cast it before sending"
    )


def _to_ns(array: pa.Array) -> pa.Array:
    kind = pa.duration("ns") if pa.types.is_duration(array.type) else pa.timestamp("ns", array.type.tz)
    return array.cast(kind).cast(pa.int64())


def _finite(array: pa.Array) -> pa.Array:
    if array.null_count == len(array) or np.isfinite(_values(array)).all():
        return array
    return pc.if_else(pc.is_finite(array), array, pa.scalar(None, array.type))


def _values(array: pa.Array) -> npt.NDArray[Any]:
    """The raw values of a fixed-width array; what lies under a null is arbitrary."""
    dtype = array.type.to_pandas_dtype()
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _good_rows(arrays: list[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Rows whose values are possible, None when all are: end >= start, times in limits, some time, kind and name."""
    rows = len(arrays[0])
    bad = np.zeros(rows, np.bool_)
    for name in ("kind", "name"):
        if arrays[_POSITION[name]].null_count:
            bad |= ~_valid(arrays[_POSITION[name]])
    for name, low in (*((point, -TIME_LIMIT) for point in _POINTS), ("launch_ns", 0)):
        array = arrays[_POSITION[name]]
        if array.null_count < rows:
            values = _values(array)
            if values.min() < low or values.max() > TIME_LIMIT:
                bad |= _valid(array) & ((values < low) | (values > TIME_LIMIT))
    enqueue, start, end = (arrays[_POSITION[point]] for point in _POINTS)
    if start.null_count < rows and end.null_count < rows:
        reversed_ = _values(end) < _values(start)
        if reversed_.any():
            bad |= reversed_ & _valid(start) & _valid(end)
    if end.null_count and start.null_count and enqueue.null_count:
        bad |= ~(_valid(end) | _valid(start) | _valid(enqueue))
    return ~bad if bad.any() else None
