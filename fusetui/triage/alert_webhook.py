"""A webhook: JSON posted to loopback, or to a host that was named on purpose."""

from __future__ import annotations

import ipaddress
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

TRIES: Final = 3
WAITS_S: Final = (0.5, 2.0)
MAX_ANSWER: Final = 1 << 16


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An answer must not send the event on to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


# No proxies: what goes to loopback must not leave the machine because of an environment variable.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())


def refusal(address: str, allow_hosts: frozenset[str]) -> str:
    """Why an address is not asked, "" when it may be: http(s), loopback or a host named in allow_hosts."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"not an address: {error}"
    if parts.scheme not in ("http", "https") or not host:
        return "not an http or https address"
    if parts.username is not None:
        return "a name and password do not belong into an address"
    if is_loopback(host) or host in allow_hosts:
        return ""
    return f"{host} is not loopback; name it in allow_hosts to have it told"


def is_loopback(host: str) -> bool:
    """`localhost`, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def post(address: str, text: str, timeout_s: float, allow_hosts: frozenset[str], stop: threading.Event) -> str:
    """POST `text`; why it failed, "" when it was taken. At most TRIES attempts, fewer once `stop` is set.

    Only what may pass is tried again: no answer, 429 and 5xx.
    """
    refused = refusal(address, allow_hosts)
    if refused:
        return refused
    failed = ""
    for attempt in range(TRIES):
        if attempt and stop.wait(WAITS_S[attempt - 1]):
            return failed
        failed, again = _once(address, text, timeout_s)
        if not failed or not again:
            return failed
    return f"{failed}; tried {TRIES} times"


def _once(address: str, text: str, timeout_s: float) -> tuple[str, bool]:
    """(why it failed, whether to try again)."""
    request = urllib.request.Request(
        address, text.encode(), {"Content-Type": "application/json", "User-Agent": "fusetui"}, method="POST"
    )
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:
            answer.read(MAX_ANSWER)
    except urllib.error.HTTPError as error:
        with error:
            return f"answered {error.code}", error.code == 429 or error.code >= 500
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        return f"no answer: {reason}", True
    return "", False
