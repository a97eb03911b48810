"""Guardrails: the rules of the command line and of a guard file.

min_n = 1000
rules = ['change(p99(latency)) < 10%', 'share(fallback) < 5% where stream ~ "prefill"']
"""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fusetui.analysis.expression.rule import Rule

MAX_BYTES: Final = 1 << 20
MAX_RULES: Final = 200
_KEYS: Final = ("min_n", "rules")
_REGRESS: Final = ("p50", "p95", "p99")


class GuardError(ValueError):
    """Guardrails that are not understood; str() says where, what and what to do."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Rules to judge, and the smallest n that a judgement may rest on."""

    rules: tuple[Rule, ...]
    min_n: int


def guard_of(args: argparse.Namespace) -> Guard:
    """From --rule, --max-pN-regress, --min-n and --guard. Raises GuardError."""
    texts = [("--rule", text) for text in args.rule]
    for name in _REGRESS:
        limit = getattr(args, f"max_{name}_regress", None)
        if limit is not None:
            texts.append((f"--max-{name}-regress", f"change({name}(latency)) <= {limit}"))
    min_n = args.min_n
    if args.guard:
        fields = _read(Path(args.guard))
        texts += [(f"{args.guard}: rule {number}", text) for number, text in enumerate(fields["rules"], 1)]
        min_n = fields["min_n"] if min_n is None else min_n
    if len(texts) > MAX_RULES:
        raise GuardError(f"at most {MAX_RULES} rules, have {len(texts)}")
    return Guard(tuple(_parsed(where, text) for where, text in texts), min_n or 0)


def _parsed(where: str, text: str) -> Rule:
    from fusetui.analysis.expression.lexer import ExpressionError
    from fusetui.analysis.expression.rule import parse_rule

    try:
        return parse_rule(text)
    except ExpressionError as error:
        raise GuardError(f"{where}\n{error}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise GuardError(f"{path}: over {MAX_BYTES:,} bytes: no guard file")
        found = tomllib.loads(raw.decode())
    except OSError as error:
        raise GuardError(f"{path}: cannot be read ({error.strerror}); name a TOML file with rules = ['…']") from None
    except (ValueError, RecursionError) as error:
        raise GuardError(f"{path}: not TOML ({error})") from None
    for key in found:
        if key not in _KEYS:
            raise GuardError(f"{path}: no setting {key!r}; there are: {', '.join(_KEYS)}")
    rules, min_n = found.get("rules", []), found.get("min_n", 0)
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise GuardError(f"{path}: rules is a list of texts")
    if not isinstance(min_n, int) or isinstance(min_n, bool) or min_n < 0:
        raise GuardError(f"{path}: min_n is a whole number from 0 on")
    return {"rules": rules, "min_n": min_n}
