"""The few free constants of the model, per (device, dtype): defaults that say they are not calibrated, and files."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.hardware import Hardware

UNCALIBRATED_ERROR: Final = 0.30  # median error asked of datasheet numbers alone
UNCALIBRATED_P95: Final = 0.60

# Shares of the DRAM bandwidth a class of vector operator reaches, with operands in device memory and in the shared
# cache: typical of public fp16 and fp32 kernel timings.
VECTOR_ETA: Final[Mapping[str, float]] = MappingProxyType(
    {
        "copy": 0.85,
        "add": 0.88,
        "elementwise": 0.86,
        "gated": 0.54,
        "rope": 0.46,
        "norm": 0.36,
        "layernorm": 0.88,
        "softmax": 0.92,
        "reduce": 0.75,
        "gather": 0.30,
        "scan": 0.40,
    }
)
VECTOR_HOT_ETA: Final[Mapping[str, float]] = MappingProxyType({name: 1.3 * eta for name, eta in VECTOR_ETA.items()})


@dataclass(frozen=True, slots=True)
class Constants:
    """Fitted or default constants. Times in ns, `eta_*` are the shares of a peak rate that are reached.

    start_ns          from the start of a kernel to its first instruction, and its end
    fill_ns           filling the pipeline, once per wave of tiles
    few_cores_rho     one core can draw this many times its even share of the DRAM bandwidth
    overlap           exponent of the sum of compute, cache and memory time: 1 adds them, many hides all but the longest
    split_ns          meeting of the parts of a split reduction
    attention_*       the same for fused attention kernels
    attention_token_ns  writing a new token's keys and values to a cache, on one core; only where attention is causal
    attention_packed  query heads that share keys are rows of one tile for any number of queries
    vector_*          the same for vector operators, by class: operands in device memory, and in the shared cache
    vector_block_ns   starting on a row, where a row is the work of one block of threads
    cast_*            the pass that scales 16-bit activations to a narrower type before a product: its start, a row on
                      one core, and the share of the bandwidth
    pace_ns           least time of a product: what its host work takes where calls were timed one after the other and
                      not replayed, and the device's time hides behind it. 0 where that was not seen
    fitted            which of matmul, attention, vector were fitted; the others are still the defaults
    median_error, p95_error   relative to the measured time, on rows the fit has not seen; defaults when not calibrated
    family_*          errors by fitted family, relative to the predicted time: a bar around a prediction
    """

    hardware: str
    dtype: str
    start_ns: float
    fill_ns: float
    eta_matrix: float
    eta_dram: float
    eta_l2: float
    few_cores_rho: float
    overlap: float
    split_ns: float
    attention_start_ns: float
    attention_fill_ns: float
    attention_overlap: float
    attention_eta_matrix: float
    attention_eta_dram: float
    attention_eta_l2: float
    attention_split_ns: float
    vector_start_ns: float
    vector_eta: Mapping[str, float]
    vector_hot_eta: Mapping[str, float]
    vector_block_ns: float = 400.0
    attention_token_ns: float = 200.0
    attention_packed: bool = True
    cast_start_ns: float = 4000.0
    cast_row_ns: float = 120.0
    cast_eta: float = 0.5
    pace_ns: float = 0.0
    calibrated: bool = False
    fitted: tuple[str, ...] = ()
    rows: int = 0
    median_error: float = UNCALIBRATED_ERROR
    p95_error: float = UNCALIBRATED_P95
    family_median: Mapping[str, float] = field(default_factory=dict)
    family_p95: Mapping[str, float] = field(default_factory=dict)


def default_constants(hw: Hardware, dtype: str) -> Constants:
    """What is assumed of a device of this kind before any measurement. `calibrated` is false."""
    gpu = hw.kind == "gpu"
    return Constants(
        hardware=hw.name,
        dtype=dtype,
        start_ns=2000.0 if gpu else 500.0,
        fill_ns=1000.0 if gpu else 100.0,
        eta_matrix=hw.typical.get("eta_matrix", 0.90),
        eta_dram=hw.typical.get("eta_dram", 0.75),
        eta_l2=hw.typical.get("eta_l2", 1.0),
        few_cores_rho=2.0,
        overlap=5.0,
        split_ns=2000.0 if gpu else 500.0,
        attention_start_ns=9000.0 if gpu else 1000.0,
        attention_fill_ns=1300.0 if gpu else 100.0,
        attention_overlap=2.0,
        attention_eta_matrix=0.70,
        attention_eta_dram=0.70,
        attention_eta_l2=0.25,
        attention_split_ns=2000.0 if gpu else 500.0,
        vector_start_ns=2000.0 if gpu else 500.0,
        vector_eta=VECTOR_ETA,
        vector_hot_eta=VECTOR_HOT_ETA,
        vector_block_ns=400.0 if gpu else 10.0,
        attention_token_ns=200.0 if gpu else 20.0,
        cast_start_ns=4000.0 if gpu else 500.0,
        cast_row_ns=120.0 if gpu else 10.0,
        attention_packed=not gpu or hw.mma_shape(dtype)[0] >= 64,
    )


def plan_error(
    constants: Constants, ns_by_family: Mapping[str, float], quantile: Literal["median", "p95"] = "median"
) -> float:
    """Relative error bar of a sum of predicted times, given its parts (ns) by family: matmul, attention, vector.

    Errors of a family are taken to point the same way, so they add: parts that are off independently do better.
    Families that were not fitted count with the error asked of datasheet numbers; so does an empty sum.
    """
    known, plain = constants.family_median, UNCALIBRATED_ERROR
    if quantile == "p95":
        known, plain = constants.family_p95, UNCALIBRATED_P95
    total = sum(ns_by_family.values())
    if total <= 0:
        return plain
    return sum(ns * known.get(family, plain) for family, ns in ns_by_family.items()) / total


def save_constants(path: Path, sets: Sequence[Constants]) -> None:
    """Write sets of constants, one per dtype, as a JSON list."""
    path.write_text(json.dumps([constants_table(c) for c in sets], indent=2) + "\n")


def constants_table(constants: Constants) -> dict[str, Any]:
    """One set as plain JSON values."""
    table = {f.name: getattr(constants, f.name) for f in dataclasses.fields(constants)}
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in table.items()}


def load_constants(path: Path, dtype: str | None = None) -> Constants:
    """Read what `save_constants` wrote: the set for `dtype`, or the only one. AcceleratorError names file and key."""
    try:
        tables = json.loads(path.read_text())
    except OSError as error:
        raise AcceleratorError(str(path), f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise AcceleratorError(str(path), f"cannot be read as JSON: {error}") from None
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise AcceleratorError(str(path), "must be a JSON list, as fusetui calibrate -o writes it")
    sets = [_constants(table, str(path)) for table in tables]
    wanted = [c for c in sets if dtype in (None, c.dtype)]
    if len(wanted) != 1:
        held = ", ".join(c.dtype for c in sets) or "nothing"
        raise AcceleratorError(str(path), f"no single set of constants for {dtype or 'any dtype'}", f"it holds {held}")
    return wanted[0]


def _constants(table: Mapping[str, Any], where: str) -> Constants:
    fields = {f.name: str(f.type) for f in dataclasses.fields(Constants)}
    # Files of earlier versions lack the constants that have defaults.
    needed = [f.name for f in dataclasses.fields(Constants) if f.default is MISSING and f.default_factory is MISSING]
    for key in (*table, *needed):
        if key not in fields or key not in table:
            raise AcceleratorError(where, f"key {key}: {'missing' if key in fields else 'not known'}")
    return Constants(**{key: _checked(key, fields[key], value, where) for key, value in table.items()})


def _checked(key: str, kind: str, value: Any, where: str) -> Any:
    if kind.startswith("Mapping"):
        least = set(VECTOR_ETA) if key.startswith("vector") else set()
        if isinstance(value, dict) and set(value) >= least:
            return {name: _checked(f"{key}.{name}", "float", eta, where) for name, eta in value.items()}
        what = f"must give every class: {', '.join(VECTOR_ETA)}" if least else "must be a table of numbers"
        raise AcceleratorError(where, f"key {key}: {what}")
    if kind.startswith("tuple"):
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return tuple(value)
    elif kind in ("str", "bool"):
        if type(value).__name__ == kind:
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return int(value) if kind == "int" else float(value)
    raise AcceleratorError(where, f"key {key}: must be {kind}, not {value!r}")
