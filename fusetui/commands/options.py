"""Options that commands share, and the types of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from fusetui.telemetry.times import parse_bytes, parse_duration_ns

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def positive(parse: Callable[[str], int]) -> Callable[[str], int]:
    def checked(text: str) -> int:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text!r} must be more than 0")
        return value

    return checked


duration = positive(parse_duration_ns)
size = positive(parse_bytes)
number = positive(int)


def within(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not between {low:g} and {high:g}")
    return value


def speed(text: str) -> float:
    return within(text, 0.1, 1000)


def seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not 0 <= value < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 2^62")
    return value


def share(text: str) -> str:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, like 10%") from None
    if not 0 <= value <= 10_000 or not text.isascii() or "e" in text.lower() or "_" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, like 10%")
    return text.strip()


def hertz(text: str) -> float:
    return within(text, 0.2, 10)


def input_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--isolate", action="store_true", help="parse in a child process, for files you do not trust")


def socket_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--token", help="what producers must send first (needed beyond loopback)")
    command.add_argument(
        "--allow-remote",
        action="store_true",
        help="beyond loopback: listen (needs --token), or ask an http address there",
    )
    command.add_argument(
        "--auth-file",
        metavar="FILE",
        help="for a server that is asked: `bearer TOKEN` or `basic USER:PASSWORD`, in FILE or in FUSETUI_AUTH",
    )
    command.add_argument("--cacert", metavar="FILE", help="who may have signed an https server's certificate (PEM)")
    command.add_argument(
        "--overflow",
        choices=("block", "drop"),
        default="block",
        help="when behind: hold producers back, or drop and count",
    )


def source_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--window", type=duration, metavar="D", help="how much the measures look back, e.g. 10s")
    command.add_argument("--filter", default="", metavar="EXPR", help="e.g. 'stream ~ \"prefill\" and wait > 5ms'")
    command.add_argument("--memory", type=size, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)")


def screen_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--theme", help="dark, light, high-contrast, colour-blind, ansi16, or one of yours")
    command.add_argument("--glyphs", choices=("braille", "block", "ascii"), help="what charts are drawn with")
    command.add_argument("--hz", type=hertz, default=2.0, metavar="N", help="screen refreshes per second, 0.2 to 10")
    command.add_argument("--slo", type=duration, metavar="D", help="latency objective, e.g. 50ms")
    command.add_argument("--alerts", metavar="FILE", help="alerts to watch (default: alerts.toml in the config folder)")
    command.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
