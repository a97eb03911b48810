"""Closed forms at points of our own: what the whole simulator gives for textbook queues. Sizes fit a quick run."""

from __future__ import annotations

from math import exp, factorial, log

import pytest
from queueing_points import Check, check

# Standard errors at these sizes are about 1 %; ten times the arrivals are in the bench and the reference test.
N = 300_000


def near(checks: list[Check], quantities: int, allowed: float = 0.05) -> None:
    assert len(checks) == quantities
    for c in checks:
        assert abs(c.error) <= allowed, f"{c.kind} {c.at} {c.quantity}: {c.got} for {c.want}"


def test_exponential_service() -> None:
    rho = 0.6
    p99 = log(rho / 0.01) / (1 - rho)
    near(check("mm1", {"rho": rho, "wq_mean": rho / (1 - rho), "wq_p99": p99, "w_mean": 1 / (1 - rho)}, N), 3)


def test_constant_service_waits_half_as_long() -> None:
    near(check("md1", {"D": 1.0, "rho": 0.65, "wq_mean": 0.65 / (2 * 0.35)}, N), 1)


@pytest.mark.parametrize(
    ("service", "second_moment"), [("Erlang-4", 1.25), ("two-point", 3.25), ("uniform", 4 / 3), ("H2", 6.5)]
)
def test_pollaczek_khinchine(service: str, second_moment: float) -> None:
    rho = 0.5
    near(check("mg1", {"service": service, "rho": rho, "wq_mean": rho * second_moment / (2 * (1 - rho))}, N), 1)


def test_erlang_c() -> None:
    c, a = 5, 3.5
    tail = a**c / factorial(c) * c / (c - a)
    waits = tail / (sum(a**k / factorial(k) for k in range(c)) + tail)
    p99 = log(waits / 0.01) / (c - a)
    near(check("mmc", {"c": c, "lam": a, "mu": 1, "rho": a / c, "wq_mean": waits / (c - a), "wq_p99": p99}, N), 2)


def test_processor_sharing_knows_only_the_mean() -> None:
    rho = 0.6
    near(check("mg1_ps", {"rho": rho, "t_mean": 1 / (1 - rho)}, N // 3), 3)


def test_two_choices_beat_one() -> None:
    rho, d = 0.6, 2
    t = sum(rho ** ((d**i - d) / (d - 1)) for i in range(1, 12))
    near(check("supermarket_jsq_d", {"d": d, "rho": rho, "t_mean": t}, N // 2), 1, 0.03)


def test_cobham() -> None:
    a, b = 0.25, 0.45
    want = {"wq1_mean": (a + b) / (1 - a), "wq2_mean": (a + b) / ((1 - a) * (1 - a - b))}
    near(check("priority_np", {"lam1": a, "lam2": b, **want}, N), 2)


def test_a_request_of_many_parts_nearly_always_has_a_slow_one() -> None:
    n, p = 50, 0.02
    near(check("fanout_max", {"n": n, "p_single": p, "p_any": 1 - (1 - p) ** n}, N), 1)


def test_waiting_for_a_batch_to_fill() -> None:
    size, rate = 5, 20
    want = {"wait_mean": (size - 1) / (2 * rate), "wait_p99": quantile_of_fill(size, rate, 0.99)}
    near(check("batch_fill_poisson", {"batch": size, "lam": rate, **want}, N), 2)


def quantile_of_fill(size: int, rate: float, q: float) -> float:
    """By bisection on the mixture of Erlang(0 .. size - 1) waits that the places in a batch have."""

    def beyond(t: float) -> float:
        return sum(
            sum(exp(-rate * t) * (rate * t) ** i / factorial(i) for i in range(still)) for still in range(size)
        ) / size  # fmt: skip

    low, high = 0.0, 100.0 / rate
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - q else (low, middle)
    return low
