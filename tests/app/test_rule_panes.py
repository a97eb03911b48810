"""Every rule names a pane that its screen has."""

from __future__ import annotations

import pytest

from fusetui.app.screens.fusion import FusionScreen
from fusetui.app.shell import SCREENS
from fusetui.app.triage_keys import module_of
from fusetui.triage.rule import Rule
from fusetui.triage.rules import all_rules

PANES = {screen.NAME: {module_of(pane) for pane in screen.PANES} for screen in (*SCREENS, FusionScreen)}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_a_finding_leads_to_a_pane_of_its_screen(rule: Rule) -> None:
    assert rule.pane in PANES[rule.screen]
