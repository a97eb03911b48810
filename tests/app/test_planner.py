"""The planner thread and the knobs: the latest request wins, mistakes are one line, knobs stop at their ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from fake_plan import fake_planned

from fusetui.accelerator.constants import default_constants, save_constants
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.saved_constants import constants_folder
from fusetui.analysis.planned import Captured, Knobs, Planned, make_planned
from fusetui.app.knobs import MODEL, Knob, changed, choices, knobs_of, shown_value, stepped, value_of
from fusetui.app.plan_board import hardware_of
from fusetui.app.planner import Answer, Planner, Request, recovery


def answered(planner: Planner) -> Answer:
    """The answer to the newest request."""
    deadline_s = time.monotonic() + 20
    while planner.busy and time.monotonic() < deadline_s:
        time.sleep(0.005)
    assert planner.answer is not None
    assert not planner.busy
    return planner.answer


def test_the_latest_request_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    may_go, in_work = threading.Event(), threading.Event()

    def slow(knobs: Knobs, captured: Captured | None = None, *, policies: Sequence[str] = ()) -> Planned:
        made.append(knobs.bandwidth)
        in_work.set()
        assert may_go.wait(10)
        return fake_planned(knobs, captured, policies=policies)

    monkeypatch.setattr("fusetui.app.planner.make_planned", slow)
    planner = Planner()
    assert not planner.busy
    planner.ask(Request(Knobs(), {}))
    assert in_work.wait(10)
    for step in range(1, 50):
        planner.ask(Request(Knobs(), {"bandwidth": 1.0 + step}))
    assert planner.busy
    may_go.set()
    answer = answered(planner)
    assert answer.number == 50
    assert answer.knobs.bandwidth == 50.0
    assert made == [1.0, 50.0]


def test_a_request_that_gives_way_leaves_its_wish_to_read_the_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go, in_work = threading.Event(), threading.Event()

    def slow(knobs: Knobs, captured: Captured | None = None, *, policies: Sequence[str] = ()) -> Planned:
        in_work.set()
        assert may_go.wait(10)
        return fake_planned(knobs, captured, policies=policies)

    monkeypatch.setattr("fusetui.app.planner.make_planned", slow)
    planner = Planner()
    planner.ask(Request(Knobs(), {}))
    assert in_work.wait(10)
    planner.ask(Request(Knobs(), {}, recover=lambda: "was read"))
    planner.ask(Request(Knobs(), {"bandwidth": 2.0}))
    may_go.set()
    assert answered(planner).capture == "was read"


def test_the_operators_of_the_capture_come_before_a_block_until_one_is_chosen() -> None:
    graph = make_planned(Knobs(block="norm-chain", dtype="fp32")).graph
    captured = Captured(graph, {}, {}, 0, 0, (), "fp32")
    planner = Planner()
    planner.ask(Request(Knobs(), {}, recover=lambda: captured))
    answer = answered(planner)
    assert (answer.start.block, answer.start.dtype) == ("", "fp32")
    assert answer.today is not None
    assert answer.today.graph is graph
    planner.ask(Request(Knobs(), {}, block_chosen=True))
    chosen = answered(planner).today
    assert chosen is not None
    assert chosen.graph.name == "transformer-prefill"


def test_a_capture_says_what_it_ran_on() -> None:
    graph = make_planned(Knobs(block="norm-chain", dtype="fp32")).graph
    planner = Planner()
    planner.ask(Request(Knobs(), {}, recover=lambda: Captured(graph, {}, {}, 0, 0, (), "fp32", hardware="host")))
    answer = answered(planner)
    assert answer.start.hardware == "host"
    assert answer.today is not None
    assert answer.today.hardware.name == "host"
    planner.ask(Request(Knobs(), {"hardware": "A100"}))
    answer = answered(planner)
    assert (answer.start.hardware, answer.knobs.hardware) == ("host", "A100")


def test_a_saved_calibration_is_used_for_its_device_and_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    planner = Planner()
    planner.ask(Request(Knobs(block="norm-chain"), {}, block_chosen=True))
    before = answered(planner).today
    assert before is not None
    assert not before.plans.calibrated
    fitted = replace(default_constants(load_hardware("h100"), "bf16"), calibrated=True)
    folder = constants_folder()
    folder.mkdir(parents=True)
    save_constants(folder / "mine.json", [fitted])
    planner.ask(Request(Knobs(block="norm-chain"), {"bandwidth": 2.0}, block_chosen=True, recover=lambda: "none"))
    answer = answered(planner)
    assert answer.today is not None
    assert answer.predicted is not None
    assert answer.today.plans.calibrated
    assert answer.predicted.plans.calibrated
    planner.ask(Request(Knobs(block="norm-chain"), {"dtype": "fp16"}, block_chosen=True))
    other = answered(planner).predicted
    assert other is not None
    assert not other.plans.calibrated


def test_a_model_sets_sizes_and_a_size_turned_by_itself_wins() -> None:
    block = Knobs(block="transformer-prefill")
    model, heads = Knob(MODEL, "model", "choice"), Knob("shape.kv_heads", "kv heads", "count")
    assert model in knobs_of("transformer-prefill")
    assert model not in knobs_of("")
    assert shown_value(model, value_of(block, MODEL)) == "the block's own sizes"
    llama = changed(block, {MODEL: "llama-70b"})
    assert dict(llama.shapes) == {"model": "llama-70b"}
    assert value_of(llama, heads.name) == 8
    both = changed(block, {MODEL: "llama-70b", heads.name: 16})
    assert value_of(both, heads.name) == 16
    assert make_planned(both).graph.sizes["kv_heads"] == 16
    assert make_planned(llama).graph.sizes["kv_heads"] == 8
    assert dict(changed(llama, {MODEL: ""}).shapes) == {}
    assert stepped(model, "", 1, captured=False) == "bert-base"


def test_mistakes_are_one_line() -> None:
    planner = Planner()
    planner.ask(Request(Knobs(hardware="abacus"), {}))
    answer = answered(planner)
    assert answer.today is None
    assert answer.problem.startswith("hardware: 'abacus' is not known; one of A100")
    planner.ask(Request(Knobs(), {"shape.sequence": 0}))
    answer = answered(planner)
    assert answer.today is not None
    assert answer.predicted is None
    assert "parameter sequence: 0 is not a whole number" in answer.problem


def test_rows_that_cannot_be_read_are_the_reason() -> None:
    def fetch() -> pl.DataFrame:
        raise OSError("disk gone\x1b[2J")

    assert recovery(fetch, lambda _: "never")() == "the operators could not be read: disk gone·[2J"
    assert recovery(pl.DataFrame, lambda frame: f"{frame.height} rows")() == "0 rows"


BANDWIDTH = Knob("bandwidth", "bandwidth", "factor")


def test_factors_go_by_steps_and_stop() -> None:
    value: float = 1.0
    for expected in (1.25, 1.5, 2.0):
        value = float(stepped(BANDWIDTH, value, 1, captured=False))
        assert value == expected
    assert stepped(BANDWIDTH, 10.0, 1, captured=False) == 10.0
    assert stepped(BANDWIDTH, 0.1, -1, captured=False) == 0.1
    assert shown_value(BANDWIDTH, 0.75) == "×0.75"


def test_words_go_round() -> None:
    policy = Knob("policy", "policy", "choice")
    assert stepped(policy, "aggressive", 1, captured=False) == "none"
    assert stepped(policy, "none", -1, captured=False) == "aggressive"
    hardware = Knob("hardware", "hardware", "choice")
    assert stepped(hardware, "h100", 1, captured=False) == "H200"
    assert "" in choices("block", captured=True)
    assert "" not in choices("block", captured=False)


def test_sizes_double_and_switches_switch() -> None:
    sequence, gated = Knob("shape.sequence", "sequence", "count"), Knob("shape.gated", "gated", "count")
    assert stepped(sequence, 1024, 1, captured=False) == 2048
    assert stepped(sequence, 1, -1, captured=False) == 1
    assert stepped(gated, 1, -1, captured=False) == 0
    assert stepped(gated, 1, 1, captured=False) == 1
    batch = Knob("shape.batch", "batch", "count")
    assert stepped(batch, 1, 1, captured=False) == 2


def test_a_block_has_its_sizes_and_a_capture_none() -> None:
    names = [knob.name for knob in knobs_of("norm-chain")]
    assert names[-2:] == ["shape.tokens", "shape.hidden"]
    assert "dtype" in names
    assert not [knob for knob in knobs_of("") if knob.name.startswith("shape.") or knob.name == "dtype"]
    assert value_of(Knobs(block="norm-chain"), "shape.tokens") == 4096
    assert value_of(changed(Knobs(block="norm-chain"), {"shape.tokens": 8}), "shape.tokens") == 8


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L40S", "L40S"),
        ("AMD Instinct MI300X", "MI300X"),
        ("Tenstorrent wormhole", "Wormhole"),
        ("AMD EPYC 7763", None),
        ("NVIDIA H1000", None),
    ],
)
def test_the_device_a_header_names(told: str, name: str | None) -> None:
    assert hardware_of({"cores": "132", "device 0": told}) == name
