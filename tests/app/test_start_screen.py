"""The start screen: offers in order, what is in the way said, a choice returned as a source."""

from __future__ import annotations

import argparse
import asyncio

import pytest
from textual.widgets import OptionList

from fusetui.app.glyphs import BRAILLE
from fusetui.app.shell import Look
from fusetui.app.start import StartApp, told
from fusetui.commands import start
from fusetui.sources.discovery import Offer

ASLEEP = Offer("device", "1 AMD Instinct", False, "/dev/kfd; asleep: looking would wake it", "fusetui live amdsmi")
SERVER = Offer("port", "vLLM", True, "port 8000 of vllm", "fusetui live http://127.0.0.1:8000/metrics")
HOST = Offer("host", "this machine", True, "CPUs", "fusetui live host")
SIM = Offer("sim", "a simulated accelerator", True, "from the model", "fusetui live sim")
NOTHING = Offer("port", "a server of its own kind", False, "gRPC", "")
FOUND = [ASLEEP, SERVER, NOTHING, HOST, SIM]


def chosen(keys: list[str]) -> str | None:
    app = StartApp(FOUND, Look({}, "", BRAILLE))

    async def press() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(*keys)
            await pilot.pause()

    asyncio.run(press())
    return app.return_value


@pytest.mark.parametrize(
    ("keys", "source"),
    [
        (["enter"], "http://127.0.0.1:8000/metrics"),
        (["down", "enter"], "host"),
        (["j", "j", "k", "enter"], "host"),
        (["3"], "sim"),
        (["4", "9", "q"], None),
        (["escape"], None),
    ],
)
def test_a_key_chooses_what_can_be_watched(keys: list[str], source: str | None) -> None:
    assert chosen(keys) == source


def test_what_can_be_watched_comes_first_and_the_rest_cannot_be_chosen() -> None:
    app = StartApp(FOUND, Look({}, "", BRAILLE))

    async def look() -> list[bool]:
        async with app.run_test(size=(80, 24)):
            options = app.query_one(OptionList)
            return [options.get_option_at_index(number).disabled for number in range(options.option_count)]

    assert asyncio.run(look()) == [False, False, False, True, True]
    assert [offer.name for offer in app.offers[:3]] == ["vLLM", "this machine", "a simulated accelerator"]


def test_an_offer_tells_its_command_or_what_is_in_the_way() -> None:
    assert told(SERVER, "1").plain == "1  vLLM  fusetui live http://127.0.0.1:8000/metrics\n   port 8000 of vllm"
    assert "not yet: then fusetui live amdsmi\n   /dev/kfd; asleep" in told(ASLEEP, "").plain
    assert told(NOTHING, "").plain == "   a server of its own kind  not yet\n   gRPC"


def test_names_found_on_the_machine_are_no_markup_and_no_escape() -> None:
    hostile = Offer("port", "[red]x[/] \x1b[31m", True, "\x1b]0;t\x07[/y]", "fusetui live http://127.0.0.1:1/metrics")
    plain = told(hostile, "1").plain
    assert not {"\x1b", "\x07"} & set(plain)
    assert "[red]x[/]" in plain


@pytest.mark.parametrize(("found", "asks"), [([HOST, SIM], False), (FOUND, True), ([ASLEEP, HOST], True)])
def test_there_is_a_question_only_where_a_machine_offers_something(found: list[Offer], asks: bool) -> None:
    assert start.worth_asking(found) is asks


@pytest.mark.parametrize(("answer", "watched"), [("host", ["host"]), (None, [])])
def test_the_answer_is_watched_and_leaving_watches_nothing(
    answer: str | None, watched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run(args: argparse.Namespace) -> int:
        ran.append(args.source)
        return 0

    monkeypatch.setattr(start, "offers", lambda **_: FOUND)
    monkeypatch.setattr(start.live, "run", run)
    monkeypatch.setattr("fusetui.app.terminal.refusal", lambda: None)
    monkeypatch.setattr("fusetui.app.start.choose", lambda *_, **__: answer)
    assert start.run(argparse.Namespace(source="sim", theme=None, glyphs=None, no_mouse=False)) == 0
    assert ran == watched


def test_a_machine_that_offers_nothing_shows_the_simulation_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(start, "offers", lambda **_: [HOST, SIM])
    monkeypatch.setattr(start.live, "run", lambda args: ran.append(args.source) or 0)
    assert start.run(argparse.Namespace(source="sim")) == 0
    assert ran == ["sim"]
