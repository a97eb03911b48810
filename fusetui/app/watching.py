"""Who watches the alerts of a session: the file they are in, their owners, their log and their hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusetui.app.state_file import file_of, state_folder

if TYPE_CHECKING:
    from fusetui.app.lookout import Watching


def watching(path: str | None, key: str) -> Watching | None:
    """The alerts of a file (None: of the config folder), None where there are none. Raises TelemetryError.

    key  names what is watched, as for bookmarks: its log is `alerts/KEY.jsonl` in the state folder
    """
    from fusetui.app.lookout import Watching
    from fusetui.triage.alert import Alerts
    from fusetui.triage.alert_file import load_alerts
    from fusetui.triage.alert_hooks import HookRunner
    from fusetui.triage.alert_log import AlertLog
    from fusetui.triage.owners import load_owners

    found = load_alerts(path)
    if not found.alerts:
        return None
    log = AlertLog(file_of(key, state_folder() / "alerts"))
    hooks = HookRunner(timeout_s=found.timeout_s, allow_hosts=found.allow_hosts, told=log.hook)
    return Watching(Alerts(found.alerts, load_owners()), log, hooks)
