"""Textbook queues run through the whole simulator: gate, lookup, placement, completion. One time unit is 1 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Batching, Config, Placement, Split
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.outcome import GATE, Outcome
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate

UNIT_NS = 1_000_000
CHUNK = 500_000
WARM_UP = 0.02

Draw = Callable[[np.random.Generator, int], np.ndarray]
_UNIT = Path.affine(UNIT_NS)
_TABLE = PlanTable("unit", _UNIT, _UNIT)


@dataclass(frozen=True)
class Check:
    """One number of a reference point: what it should be, what came out, and how far apart they may be (relative)."""

    kind: str
    at: str
    quantity: str
    want: float
    got: float
    tolerance: float

    @property
    def error(self) -> float:
        return self.got / self.want - 1 if self.want else self.got

    @property
    def within(self) -> bool:
        return abs(self.error) <= self.tolerance


def tolerance(rho: float, quantity: str) -> float:
    """2 % of a mean and 4 % of a p99 up to a load of 0.8; above it samples correlate longer, and both widen."""
    return (0.04 if "p9" in quantity else 0.02) * max(1.0, 0.2 / (1 - rho))


def runs(config: Config, per_unit: float, work: Draw, n: int, seed: int, streams: tuple[float, ...] = (1.0,)
         ) -> Iterator[Outcome]:  # fmt: skip
    """n Poisson arrivals at a rate per unit, in pieces that go on from each other; stream i has share streams[i]."""
    names = tuple(Stream(str(i), i) for i in range(len(streams)))
    offset, last = 0, None
    for piece, first in enumerate(range(0, n, CHUNK)):
        size = min(CHUNK, n - first)
        arrival = poisson(per_unit * 1e9 / UNIT_NS, size, seed * 10_000 + piece) + offset
        offset = int(arrival[-1])
        rng = generator(seed * 10_000 + piece, 9)
        stream = np.searchsorted(np.cumsum(streams)[:-1] / sum(streams), rng.random(size), side="right")
        load = Load.of(arrival, work=work(rng, size), stream=stream, streams=names)
        last = simulate(load, config, after=last)
        yield last


def observed(outcomes: Iterator[Outcome]) -> dict[str, np.ndarray]:
    """Waits, latencies, work and streams of all requests after the warm-up, in units."""
    columns: dict[str, list[np.ndarray]] = {"wq": [], "w": [], "work": [], "stream": []}
    for run in outcomes:
        columns["wq"].append((run.start_ns - run.load.arrival_ns) / UNIT_NS)
        columns["w"].append(run.latency_ns / UNIT_NS)
        columns["work"].append(run.load.work)
        columns["stream"].append(run.load.stream)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {name: values[int(WARM_UP * len(values)) :] for name, values in joined.items()}


def exponential(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.exponential(size=n)


def constant(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.ones(n)


def two_point(rng: np.random.Generator, n: int) -> np.ndarray:
    """A plan hit, or one in ten a fallback eleven times as long."""
    return np.where(rng.random(n) < 0.9, 0.5, 5.5)


SERVICES: dict[str, Draw] = {
    "exp": exponential,
    "Erlang-4": lambda rng, n: rng.gamma(4, 0.25, n),
    "H2": lambda rng, n: rng.exponential(size=n) * np.where(rng.random(n) < 0.9, 0.5, 5.5),
    "two-point": two_point,
    "lognormal": lambda rng, n: rng.lognormal(-0.5, 1.0, n),
    "uniform": lambda rng, n: rng.uniform(0, 2, n),
}


def single(point: Mapping[str, Any], n: int, seed: int) -> list[tuple[str, float]]:
    """M/G/1 with the service of the point, or exponential, or constant; times in units of the mean service."""
    work = (
        constant if "D" in point else SERVICES[str(point.get("service", "exp")).split(":")[0].split("(")[0].split()[0]]
    )
    seen = observed(runs(Config((_TABLE,), placement=Placement("static")), point["rho"], work, n, seed))
    mu = point.get("mu", 1)
    return [
        ("wq_mean", seen["wq"].mean() / mu),
        ("wq_p99", np.quantile(seen["wq"], 0.99) / mu),
        ("w_mean", seen["w"].mean() / mu),
    ]


def many(point: Mapping[str, Any], n: int, seed: int) -> list[tuple[str, float]]:
    """M/M/c."""
    config = Config((_TABLE,), cores=point["c"], placement=Placement("shared"))
    mu = point["mu"]
    seen = observed(runs(config, point["lam"] / mu, exponential, n, seed))
    return [
        ("wq_mean", seen["wq"].mean() / mu),
        ("wq_p99", np.quantile(seen["wq"], 0.99) / mu),
        ("w_mean", seen["w"].mean() / mu),
        ("w_p99", np.quantile(seen["w"], 0.99) / mu),
    ]


def sharing(point: Mapping[str, Any], n: int, seed: int) -> list[tuple[str, float]]:
    """M/G/1 processor sharing: jobs without a queue that each ask for all of one device's bandwidth."""
    path = Path.affine(UNIT_NS, demand=1.0)
    config = Config((PlanTable("unit", path, path),), placement=Placement("unlimited"), contention=True)
    seen = observed(runs(config, point["rho"], two_point, n, seed))
    short = seen["work"] < 1
    return [
        ("t_mean", seen["w"].mean()),
        ("t_given_0_5", seen["w"][short].mean()),
        ("t_given_5_5", seen["w"][~short].mean()),
    ]


def supermarket(point: Mapping[str, Any], n: int, seed: int, cores: int = 400) -> list[tuple[str, float]]:
    """Shortest of d queues of many. The reference is the limit of infinitely many cores."""
    placement = Placement("random") if point["d"] == 1 else Placement("shortest", choices=point["d"], seed=seed)
    config = Config((_TABLE,), cores=20 if point["d"] == 1 else cores, placement=placement)
    return [("t_mean", observed(runs(config, point["rho"] * config.cores, exponential, n, seed))["w"].mean())]


def priority(point: Mapping[str, Any], n: int, seed: int) -> list[tuple[str, float]]:
    """Two streams on one core, the first served first, nobody interrupted."""
    share = (point["lam1"], point["lam2"])
    seen = observed(runs(Config((_TABLE,)), sum(share), exponential, n, seed, share))
    return [(f"wq{i + 1}_mean", seen["wq"][seen["stream"] == i].mean()) for i in (0, 1)]


def fan_out(point: Mapping[str, Any], n: int, seed: int) -> list[tuple[str, float]]:
    """Share of requests of n parts with a slow part."""
    requests = max(1, n // point["n"])
    split = Split(point["n"], point["p_single"], 2.0, seed)
    config = Config((_TABLE,), placement=Placement("unlimited"), split=split)
    load = Load.of(np.arange(requests) * UNIT_NS)
    run = simulate(load, config)
    return [("p_any", float((run.latency_ns > UNIT_NS // point["n"] + 1).mean()))]


def batch_fill(point: Mapping[str, Any], n: int, seed: int) -> list[tuple[str, float]]:
    """Wait for a batch to fill."""
    config = Config((_TABLE,), placement=Placement("unlimited"), batching=Batching("size", point["batch"]))
    load = Load.of(poisson(point["lam"], n - n % point["batch"], seed))
    wait = simulate(load, config).parts[:, GATE] / 1e9
    return [("wait_mean", wait.mean()), ("wait_p95", np.quantile(wait, 0.95)), ("wait_p99", np.quantile(wait, 0.99))]


RUN = {
    "mm1": single, "md1": single, "mg1": single, "mmc": many, "mg1_ps": sharing, "supermarket_jsq_d": supermarket,
    "priority_np": priority, "fanout_max": fan_out, "batch_fill_poisson": batch_fill,
}  # fmt: skip


def load_of(kind: str, point: Mapping[str, Any]) -> float:
    """Utilisation of a point, 0 where it has none."""
    return float(point.get("rho", point.get("lam1", 0) + point.get("lam2", 0)))


def requests_for(kind: str, point: Mapping[str, Any], scale: float = 1.0) -> int:
    """How many arrivals: enough for the tolerance, fewer where every event is dear."""
    rho = load_of(kind, point)
    if kind == "fanout_max":
        return round(2_000_000 * scale)
    if kind in ("mg1_ps", "supermarket_jsq_d") and point.get("d", 2) > 1:
        return round((3_000_000 if kind == "mg1_ps" and rho > 0.8 else 1_000_000) * scale)
    if point.get("erlang_c", 1.0) < 0.1:  # few wait at all
        return round(6_000_000 * scale)
    if rho > 0.8 and point.get("c", 1) > 16:  # a queue of many cores changes as slowly as one, over more arrivals
        return round(4_000_000 * (point["c"] // 16) * scale)
    heavy = str(point.get("service", "")).startswith(("H2", "two", "logn"))
    return round((1_000_000 if rho <= 0.5 else 2_000_000 if rho < 0.8 else 4_000_000) * (2 if heavy else 1) * scale)


def check(kind: str, point: Mapping[str, Any], n: int, seed: int = 1) -> list[Check]:
    """Simulate a point and compare each quantity it has a reference for."""
    rho = load_of(kind, point)
    at = " ".join(f"{key}={value}" for key, value in point.items() if key in _PARAMETERS)
    wanted = dict(point)
    if kind == "mg1_ps":
        wanted |= {"t_given_0_5": 0.5 / (1 - rho), "t_given_5_5": 5.5 / (1 - rho)}
    checks = []
    for quantity, got in RUN[kind](point, n, seed):
        if quantity in wanted:
            allowed = tolerance(rho, quantity)
            if kind == "fanout_max":  # a share of few: four standard errors of a binomial
                p = point["p_any"]
                allowed = max(4 * ((1 - p) / p / max(1, n // point["n"])) ** 0.5, 1e-6)
            checks.append(Check(kind, at, quantity, wanted[quantity], float(got), allowed))
    return checks


_PARAMETERS = ("lam", "mu", "c", "D", "service", "rho", "d", "lam1", "lam2", "n", "p_single", "batch")
