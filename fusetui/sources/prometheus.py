"""A serving engine or device exporter by its page of metrics: vLLM, SGLang, TensorRT-LLM, Triton, DCGM …

Scraped once a second in a thread of its own; what comes of it are counters and marks (`fusetui.sources.prometheus_rows`
says how they are named). Histograms are of requests that ended and a bucket is all they know: no request, no execution
and no exact percentile comes from here. Rows stand at the time of the scrape, whatever time the page gives.
Several servers stand in one view, each as a host of its own.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urldefrag

from fusetui.sources.prometheus_fetch import parse_target
from fusetui.sources.prometheus_many import ManyServers
from fusetui.sources.prometheus_scraper import WINDOW_S
from fusetui.sources.prometheus_source import EVERY_S, PrometheusSource
from fusetui.sources.spec import OpenOptions, parameters
from fusetui.telemetry.errors import TelemetryError

NAMES: Final = ("http", "https")
SYNTAX: Final = (
    "http://127.0.0.1:8000/metrics: a serving engine's or exporter's metrics, as #every=1,window=30 says;"
    " several with a comma between"
)
_MOST: Final = 64
_NEXT: Final = re.compile(r",(?=https?://)")


def open_spec(spec: str, options: OpenOptions) -> PrometheusSource | ManyServers:
    """`http://host:port/path` or several, with `#every=…,window=…` in seconds."""
    urls, words = urldefrag(spec)
    targets = [parse_target(url, allow_remote=options.allow_remote) for url in _NEXT.split(urls)]
    given = {"every": EVERY_S, "window": WINDOW_S, **parameters(f"{urls}#:{words}"[len(urls) :], ("every", "window"))}
    every_s, window_s = given["every"], given["window"]
    if not (0.1 <= every_s <= 3600 and every_s <= window_s <= 3600):
        raise TelemetryError(spec, "every or window is out of range", "0.1 <= every <= window <= 3600 seconds")
    if window_s / every_s > 1000:
        raise TelemetryError(spec, "a window of over 1,000 scrapes", "scrape less often")
    if not 1 <= len(targets) <= _MOST or len(set(targets)) < len(targets):
        raise TelemetryError(spec, "an address twice, or too many", f"name each server once, {_MOST} at most")
    if options.authorization and not all(target.tls or target.here for target in targets):
        raise TelemetryError(spec, "what grants access would travel in the clear", "ask by https, or open a tunnel")
    if len(targets) == 1:
        return PrometheusSource(targets[0], options, every_s=every_s, window_s=window_s)
    return ManyServers(targets, options, every_s=every_s, window_s=window_s)
