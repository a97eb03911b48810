"""How long a steady scrape takes to read, of the second it has: `python tests/bench/bench_prometheus.py [PAGE]`.

Without a page it makes one like Ray Serve's: 1,500 series with some 380 bytes of labels each.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fusetui.sources.prometheus_fetch import Page
from fusetui.sources.prometheus_scraper import Scraper
from fusetui.sources.prometheus_text import SeriesTable

ROUNDS = 50


def made_up() -> str:
    """A page with long labels, a quarter of it histograms of an engine."""
    labels = ",".join(f'{name}="{name * 8}"' for name in ("session", "worker", "node", "scope", "version", "address"))
    name = "ray_serve_batch_wait_time_ms"
    lines = [f'ray_other_{i}_total{{{labels},n="{i}"}} {i}.0' for i in range(1100)]
    for replica in range(40):
        lines += [f'{name}_bucket{{{labels},replica="{replica}",le="{le}"}} {le + 1}.0' for le in range(9)]
        lines.append(f'{name}_bucket{{{labels},replica="{replica}",le="+Inf"}} 10.0')
    return "\n".join(lines) + "\n"


def main() -> None:
    text = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else made_up()
    table, scraper = SeriesTable(), Scraper()
    page = Page(text, False, len(text))
    first_s = _seconds(lambda: scraper.take(page, 1, 1))
    table.read(text)
    parse = [_seconds(lambda: table.read(text)) for _ in range(ROUNDS)]
    whole = [_seconds(partial(scraper.take, page, n * 10**9, n)) for n in range(2, ROUNDS + 2)]
    print(f"page {len(text):,} bytes, {len(scraper.table.series):,} series")
    print(f"first scrape {first_s * 1e3:.1f} ms")
    for what, times in (("parse", parse), ("parse, brackets, checks, batch", whole)):
        median, worst = statistics.median(times), max(times)
        print(f"steady {what}: median {median * 1e3:.2f} ms, worst {worst * 1e3:.2f} ms, {median:.2%} of a second")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
