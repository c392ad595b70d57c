"""Operators behind HTTP, with limits on time and size."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tocsin.errors import OperatorError
from tocsin.operators.channels import TooLongError
from tocsin.operators.operator import Operator, operator

MOST_BYTES = 1_000_000
"""The longest answer that is read."""


def http_operator(
    name: str,
    url: str,
    *,
    reads: Sequence[str] = (),
    parameters: Sequence[str] = (),
    outputs: Sequence[str] | Mapping[str, type] = (),
    limit: float = 1.0,
    headers: Mapping[str, str] | None = None,
    **settings: Any,
) -> Operator:
    """Return an operator that asks a service: the arguments by name go as a JSON object in a POST, the answer is JSON.

    The answer means what a Python function's result means: a truth, a value, a list of values; a tuple is a list of
    lists. A status other than 200, a redirection too, a longer answer than `MOST_BYTES` or a longer wait than ``limit``
    is a failure; the connection is closed then.

    >>> http_operator("sentiment", "http://127.0.0.1:9/", reads=["text"], outputs=["score"]).limit
    1.0
    """
    if not url.startswith(("http://", "https://")):
        raise OperatorError(f"{name}: a URL begins with http:// or https://, not {url!r}")
    names = [*reads, *parameters]
    sent = {"Content-Type": "application/json", **(headers or {})}

    def ask(*values: Any) -> Any:
        body = json.dumps(dict(zip(names, values, strict=True)), default=str).encode()
        return meaning(_posted(_Request(url, body, sent, method="POST"), limit), outputs)

    return operator(
        ask,
        name=name,
        reads=list(reads),
        parameters=list(parameters),
        outputs=outputs,
        limit=limit,
        **settings,
    )


def meaning(text: bytes, outputs: Sequence[str] | Mapping[str, type]) -> Any:
    """Return what an answer means; of several outputs each list inside is one binding.

    >>> meaning(b'[["tug", 3]]', ["kind", "n"])
    [('tug', 3)]
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"the answer is longer than {MOST_BYTES:,} bytes")
    found = json.loads(text)
    if len(outputs) > 1 and isinstance(found, list):
        return [tuple(each) if isinstance(each, list) else each for each in found]
    return found


class _Request(urllib.request.Request):
    """A request that can be ended from another thread, whatever its connection waits for."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.is_over = False
        self._sockets: list[socket.socket] = []

    def connection(self, kind: Callable[..., Any], host: str, **named: Any) -> Any:
        """Return a connection whose socket is noted when there is one."""
        made = kind(host, **named)
        connect = made.connect

        def connected() -> None:
            connect()
            self._sockets.append(made.sock)
            if self.is_over:
                self.end()

        made.connect = connected
        return made

    def end(self) -> None:
        """End it."""
        self.is_over = True
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> Any:
        return self.do_open(functools.partial(request.connection, http.client.HTTPConnection), request)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> Any:
        return self.do_open(functools.partial(request.connection, http.client.HTTPSConnection), request)


class _Unmoved(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would ask someone else, without the arguments but with the headers."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Http, _Https, _Unmoved)


def _posted(request: _Request, limit: float) -> bytes:
    """Return the body of the answer to a request."""
    over = threading.Timer(limit, request.end)
    over.daemon = True
    over.start()
    try:
        with _opener().open(request, timeout=limit) as answer:
            if answer.status != http.client.OK:
                raise ValueError(f"status {answer.status}, not 200")
            text: bytes = answer.read(MOST_BYTES + 1)
            if request.is_over:  # what was cut off there may look whole
                raise TooLongError
            if answer.length and len(text) <= MOST_BYTES:
                raise ValueError(f"the answer breaks off, {answer.length:,} bytes before its end")
            return text
    except urllib.error.HTTPError as error:
        error.close()
        raise
    except (OSError, http.client.HTTPException):
        if request.is_over:
            raise TooLongError from None
        raise
    finally:
        over.cancel()
