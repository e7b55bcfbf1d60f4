"""Who is let in: whoever has the token, and browsers that somebody with the token has let in.

A browser cannot send the token by itself, and an address that carried it would keep it in histories
and logs. So somebody with the token asks for a code that is good once and for a minute; the address
with it gives the browser a session, signed with the token, which no script can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

CODE_VALID_S = 60.0
SESSION_VALID_S = 7 * 24 * 3600
_MOST_CODES = 1_000
_SESSION = "session"


class Door:
    """Knows the token of a system, gives out codes, and recognises sessions.

    Sessions are not kept anywhere: a controller that was started anew knows those of the one before
    it, as long as the token is the same.

    >>> door = Door("secret", lambda: 100.0)
    >>> session = door.enter(door.code())
    >>> door.is_session(session), door.is_session("200.x.y"), Door("other").is_session(session)
    (True, False, False)
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        self._token = token.encode()
        self._clock = clock
        self._codes: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_token(self, written: str) -> bool:
        """Whether this is the system's token."""
        return secrets.compare_digest(written.encode(), self._token)

    def code(self) -> str:
        """A code that opens a session once, within a minute."""
        made, now_s = secrets.token_urlsafe(24), self._clock()
        with self._lock:
            self._codes = {
                code: until_s for code, until_s in self._codes.items() if until_s > now_s
            }
            while len(self._codes) >= _MOST_CODES:
                self._codes.pop(next(iter(self._codes)))
            self._codes[_digest(made)] = now_s + CODE_VALID_S
        return made

    def enter(self, code: str) -> str | None:
        """A session for a code that is still good; after that it is not."""
        now_s = self._clock()
        with self._lock:
            until_s = self._codes.pop(_digest(code), 0.0)
        if until_s <= now_s:
            return None
        told = f"{int(now_s + SESSION_VALID_S)}.{secrets.token_urlsafe(12)}"
        return f"{told}.{self._signature(told)}"

    def is_session(self, written: str) -> bool:
        """Whether this was given to a browser that was let in, not too long ago."""
        told, _, signature = written.rpartition(".")
        if not secrets.compare_digest(signature.encode(), self._signature(told).encode()):
            return False
        # Only now: it was written here.
        return float(told.partition(".")[0]) > self._clock()

    def _signature(self, told: str) -> str:
        text = f"{_SESSION}.{told}".encode()
        return hmac.new(self._token, text, hashlib.sha256).hexdigest()


def _digest(code: str) -> str:
    """What is looked up instead of the code itself: how long that takes tells nothing about it."""
    return hashlib.sha256(code.encode()).hexdigest()
