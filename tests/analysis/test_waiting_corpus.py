"""A real overload, a minute in: what has finished tells a tenth of what those who wait will see."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from fusetui.analysis import fmt
from fusetui.analysis.quantiles import tail_of

CORPUS = os.environ.get("FUSETUI_CORPUS")
LOG = "traces/serving/liao4s__BurstGPT_test__detail_log_scale1000_prompt500.json"


@pytest.mark.skipif(CORPUS is None, reason="FUSETUI_CORPUS is not set")
def test_those_who_still_wait_for_their_first_token_bound_the_tail() -> None:
    log = json.loads((Path(CORPUS or "") / LOG).read_text()).values()
    arrival = np.array([row["record_time"] - row["total_chunk_time"] for row in log])
    first = np.array([row["first_chunk_time"] for row in log])
    at = arrival.min() + 60.0
    told, waits = arrival + first <= at, (arrival <= at) & (arrival + first > at)
    done = (first[told] * 1e9).astype(np.int64)
    ages = ((at - arrival[waits]) * 1e9).astype(np.int64)
    blind, honest = tail_of(done), tail_of(done, ages)
    assert (len(done) + len(ages), honest.open_n) == (int((arrival <= at).sum()), int(waits.sum()))
    assert blind.p95_ns is not None
    assert honest.p95_ns is not None
    assert blind.p95_ns < 12e9
    assert "p95" in honest.at_least
    assert honest.p95_ns >= 21.9e9
    assert fmt.bounded(honest.p95_ns, "p95" in honest.at_least).startswith("≥")
    eventual = np.sort(first[arrival <= at])
    assert honest.p95_ns / 1e9 <= eventual[int(np.ceil(0.95 * len(eventual))) - 1]
