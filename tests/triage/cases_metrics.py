"""Cases of a page of metrics: what a histogram's buckets hide, and what is no longer on the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from triage_rows import Case, S

from fusetui.sources.prometheus_fetch import Page
from fusetui.sources.prometheus_scraper import Scraper
from fusetui.telemetry.header import Header

TTFT = "vllm:time_to_first_token_seconds"
PROMETHEUS = Header(source="prometheus", clock="trace")


def histogram(name: str, bounds: Sequence[float], values: np.ndarray) -> str:
    """The lines of a histogram that has taken in `values`."""
    lines = [f"# TYPE {name} histogram"]
    lines += [f'{name}_bucket{{le="{bound}"}} {int((values <= bound).sum())}' for bound in bounds]
    lines += [
        f'{name}_bucket{{le="+Inf"}} {len(values)}',
        f"{name}_sum {values.sum():.6f}",
        f"{name}_count {len(values)}",
    ]
    return "\n".join([*lines, ""])


def scraped(pages: Sequence[str]) -> list[pa.RecordBatch]:
    """One page a second."""
    scraper = Scraper()
    return [scraper.take(Page(text, False, len(text)), at * S, at * S) for at, text in enumerate(pages, 1)]


def _waits(mean_s: float, per_page: int, pages: int, seed: int) -> list[np.ndarray]:
    every = np.random.default_rng(seed).gamma(4.0, mean_s / 4.0, per_page * pages)
    return [every[: per_page * (page + 1)] for page in range(pages)]


def floor() -> Case:
    """Waits of 20 ms in a first bucket of 300 ms: interpolated, p99 reads 297 ms."""
    pages = [histogram(TTFT, (0.3, 0.5, 1.0, 10.0), waits) for waits in _waits(0.02, 50, 40, 8)]
    return Case(8, "p99 floor of 297 ms from a 300 ms first bucket", ("",), "honesty/first-bucket", scraped(pages),
                header=PROMETHEUS)  # fmt: skip


def pinned() -> Case:
    """Waits of minutes, and no bucket past 60 s: p99 reads 60 s whatever happens."""
    pages = [histogram(TTFT, (1.0, 10.0, 30.0, 60.0), waits) for waits in _waits(150.0, 50, 40, 9)]
    return Case(9, "p99 pinned at the top bucket of 60 s", ("",), "honesty/last-bucket", scraped(pages),
                header=PROMETHEUS)  # fmt: skip


def finer() -> Case:
    """From the 30th page on the engine has finer buckets; the waits are what they were."""
    waits = _waits(0.02, 50, 80, 10)
    pages = [histogram(TTFT, (0.3, 1.0, 10.0), seen) for seen in waits[:30]]
    pages += [histogram(TTFT, (0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 10.0), seen) for seen in waits[:50]]
    return Case(10, "bucket bounds that change between scrapes", ("",), "honesty/buckets", scraped(pages),
                header=PROMETHEUS)  # fmt: skip


def vanished() -> Case:
    """A gauge and a histogram that the next version no longer has."""
    waits = _waits(0.4, 50, 60, 12)
    pages = []
    for page, seen in enumerate(waits):
        text = f"vllm:num_requests_running {3 + page % 4}\nvllm:generation_tokens_total {1000 * page}\n"
        text += "" if page >= 30 else f"vllm:num_requests_waiting {1 + page % 3}\n" + histogram(TTFT, (0.3, 1.0), seen)
        pages.append(text)
    return Case(12, "metrics vanish between versions", ("",), "honesty/vanished", scraped(pages), header=PROMETHEUS)


METRICS = (floor, pinned, finer, vanished)
