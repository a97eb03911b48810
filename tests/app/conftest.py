"""Runs `async def` tests, which need no plugin beyond this; and findings that stay as they are."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from fake_triage import fake_triage


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings that do not change with the rules."""
    monkeypatch.setattr("fusetui.triage.judge.triage", fake_triage)
