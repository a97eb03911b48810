"""Scenario files: every shipped one reads, and anything wrong is one line with file, key and the nearest known."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusetui.accelerator.runtime.config import Batching, Slow
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names
from fusetui.accelerator.scenario.spec import Bursts, Log, Rates
from fusetui.accelerator.scenario.table import ScenarioError

SMALL = """
title = "small"
see = "nothing"
seconds = 10

[hardware]
name = "A100"
devices = 2
slices = 3

[[model]]
name = "m"
block = "mlp"
size = "tokens"
planned = [64, 256]

[[stream]]
name = "a"
per_s = 5
priority = 2

[[stream.mix]]
tokens = [10, 200]
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_the_library_has_what_it_promises() -> None:
    assert scenario_names() == (
        "bucket-worse-than-eager", "burst", "case-study", "head-of-line-prefill", "metastable-fallback", "serving",
        "shape-drift", "steady", "straggler",
    )  # fmt: skip
    for name in scenario_names():
        scenario = load_scenario(name)
        assert scenario.title
        assert len(scenario.see) > 40
        assert Path(scenario.where).read_text().startswith("# "), "says what to see"


def test_a_small_one_with_its_defaults(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, SMALL))
    assert (scenario.seconds, scenario.seed, scenario.slo_ns, scenario.cores) == (10.0, 1, None, 6)
    assert scenario.streams[0].arrivals == Rates((0.0,), (5.0,))
    assert (scenario.streams[0].model, scenario.streams[0].priority) == ("m", 2)
    assert scenario.streams[0].mixes[0].shares == (1.0, 1.0)
    assert scenario.batching == Batching()
    assert scenario.lookup.captured == (64, 256)
    assert scenario.contention
    assert scenario.models[0].launch == "graph"
    assert scenario.with_policy("none").models[0].policy == "none"


def test_all_kinds_of_arrivals_and_trouble(tmp_path: Path) -> None:
    more = """
[[stream]]
name = "b"
burst = { quiet_per_s = 1, burst_per_s = 9, quiet_s = 2, burst_s = 0.5 }
[[stream.mix]]
tokens = [1]
[[stream]]
name = "c"
log = "azure.csv"
speed = 20
[[stream]]
name = "d"
per_s = [1, 2]
from_s = [0, 5]
[[stream.mix]]
tokens = [1]
output = [7]
[[stream.mix]]
from_s = 4
tokens = [2]
[[slow]]
core = 5
factor = 1.5
from_s = 2
[[mark]]
at_s = 3
name = "there"
[batching]
kind = "deadline"
size = 8
wait_ms = 2.5
"""
    scenario = load_scenario(written(tmp_path, SMALL + more))
    assert [s.arrivals for s in scenario.streams[1:]] == [
        Bursts(1, 9, 2, 0.5), Log("azure.csv", 20), Rates((0.0, 5.0), (1.0, 2.0)),
    ]  # fmt: skip
    assert scenario.slow == (Slow(5, 1.5, 2_000_000_000, 10_000_000_000),)
    assert scenario.batching == Batching("deadline", 8, 2_500_000)
    assert (scenario.marks[0].at_s, scenario.marks[0].name) == (3.0, "there")
    assert scenario.streams[3].mixes[0].output == (7,)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("seconds = 10", "secnds = 10"), "key secnds: not known; did you mean seconds?"),
        (("per_s = 5", "rate = 5"), "key stream[0].per_s: 0 kinds of arrivals"),
        (("priority = 2", "prio = 2"), "key stream[0].prio: not known; did you mean priority?"),
        (("tokens = [10, 200]", "tokens = [10, 200]\nshare = [1, 2]"), "mix[0].share: not known; did you mean shares?"),
        (("tokens = [10, 200]", "tokens = [10, 200]\nshares = [1]"), "must have one share each"),
        (("tokens = [10, 200]", "tokens = []"), "must have one share each"),
        (('block = "mlp"', 'block = "mpl"'), "key model[0].block: 'mpl' is not known; did you mean mlp?"),
        (('size = "tokens"', 'size = "batch"'), "key model[0].size: 'batch' is not known"),
        (("planned = [64, 256]", "planned = [256, 64]"), "must be sizes, smallest first"),
        (("planned = [64, 256]", "planned = [64, 2.5]"), "must be a list of whole numbers"),
        (("devices = 2", "devices = 0"), "key hardware.devices: 0 is not between 1 and 4096"),
        (("devices = 2", "devices = true"), "must be a number, not True"),
        (("seconds = 10", "seconds = nan"), "key seconds: must be a number, not nan"),
        (("seconds = 10", "seconds = 10\nseed = -1"), "key seed: -1 is not between"),
        (("per_s = 5", "per_s = 0"), "key stream[0].per_s: 0 is not between"),
        (("per_s = 5", "per_s = [5]\nfrom_s = [1]"), "must be one time for each rate"),
        (("per_s = 5", 'per_s = 5\nlog = "x"'), "2 kinds of arrivals"),
        (("[[stream.mix]]\ntokens = [10, 200]", ""), "key stream[0].mix: goes with arrivals"),
        (("[[stream.mix]]", "[[stream.mix]]\nfrom_s = 3"), "must start at from_s = 0"),
        (("[[stream]]", "[[stream]]\nmodel = 'n'"), "key stream[0].model: 'n' is not known"),
        (("[[stream]]", "[placement]\nkind = 'hash'\n[[stream]]"), "'hash' is not known; did you mean hashed?"),
        (("[[stream]]", "[placement]\nweights = [1, 2]\n[[stream]]"), "2 of them; one for each of 6 cores"),
        (("[[stream]]", "[batching]\nkind = 'continuous'\n[[stream]]"), "key batching.decode: continuous batching and"),
        (("[[stream]]", "[batching]\nkind = 'continuous'\ndecode = 'm'\n[[stream]]\n"), ""),
        (("[[stream]]", "[[slow]]\ncore = 6\nfactor = 2\n[[stream]]"), "key slow[0].core: 6 is not between 0 and 5"),
        (("[[stream]]", "[[mark]]\nat_s = 11\nname = 'x'\n[[stream]]"), "key mark[0].at_s: 11 is not between 0 and 10"),
        (("[[stream]]", "[stream]"), "key stream: must be a list of tables: write [[stream]]"),
        (('title = "small"', "title = 3"), "key title: must be text, not 3"),
        (('title = "small"', "title ="), "cannot be read as TOML"),
        (('see = "nothing"\n', ""), "key see: missing"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    path = written(tmp_path, SMALL.replace(*change, 1))
    if not complaint:
        assert not load_scenario(path).contention, "continuous batching shares no bandwidth"
        return
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    text = str(caught.value)
    assert complaint in text
    assert text.startswith(path)
    assert "\n" not in text


def test_a_name_that_is_none_says_what_there_is() -> None:
    with pytest.raises(ScenarioError, match="no such scenario; a TOML file, or bucket-worse-than-eager, burst"):
        load_scenario("brust")
