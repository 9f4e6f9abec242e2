"""Whether addresses can be reached, quickly, and what a failed download means."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from urllib.parse import urlsplit


def unreachable(urls: Iterable[str], seconds: float) -> dict[str, str]:
    """Return the addresses whose server takes no connection, each with the reason.

    All are tried at once and given up together. The time limit holds for looking up the name as
    well, which the time-outs of sockets and of requests do not cover: without a network that
    alone can take minutes. Where a proxy is set, the proxy is what must answer.

    Parameters
    ----------
    urls : iterable of str
        Addresses, http or https.
    seconds : float
        How long to wait, in all, > 0.

    Returns
    -------
    dict of str to str
        Reason by address; addresses that answer are not in it.

    Examples
    --------
    >>> unreachable(["http://127.0.0.1:9"], seconds=1.0)
    {'http://127.0.0.1:9': '127.0.0.1 refuses the connection'}
    """
    urls = list(dict.fromkeys(urls))
    endpoints = {url: _endpoint(url) for url in urls}
    outcome: dict[tuple[str, int], str | None] = {}

    def connect(endpoint: tuple[str, int]) -> None:
        outcome[endpoint] = _connect(endpoint, seconds)

    threads = [
        threading.Thread(target=connect, args=(endpoint,), daemon=True)
        for endpoint in set(endpoints.values())
    ]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    reasons = {
        url: outcome.get(endpoint, _no_answer(endpoint[0], seconds))
        for url, endpoint in endpoints.items()
    }
    return {url: reason for url, reason in reasons.items() if reason is not None}


def why_failed(error: Exception, timeout: tuple[float, float]) -> str:
    """Say in a few words why a download failed.

    Parameters
    ----------
    error : requests.RequestException
        What the download raised.
    timeout : (float, float)
        Its time-outs for connecting and reading, in seconds.

    Returns
    -------
    str
    """
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {timeout[0]:g} s"
    if isinstance(error, requests.Timeout):
        return f"the server sent nothing for {timeout[1]:g} s"
    if isinstance(error, requests.exceptions.SSLError):
        return "no secure connection (its certificate was not accepted)"
    if isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    return f"the download failed ({type(error).__name__})"


def worth_retrying(error: Exception) -> bool:
    """Return whether the same download may succeed when begun again at once.

    True for a connection that broke off and for server errors (status 5xx); a server that says
    that the file is not there, or that does not answer at all, will not change its mind.
    """
    import requests

    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code >= 500
    if isinstance(error, requests.Timeout | requests.exceptions.SSLError):
        return False
    return isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError)


def _endpoint(url: str) -> tuple[str, int]:
    """Return host and port of what must take the connection: the server, or a proxy."""
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    parts = urlsplit(proxy or url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _connect(endpoint: tuple[str, int], seconds: float) -> str | None:
    """Open and close a connection; return why that failed, or None."""
    host = endpoint[0]
    try:
        socket.create_connection(endpoint, timeout=seconds).close()
    except socket.gaierror:
        return f"the name {host} cannot be resolved (is there a network?)"
    except ConnectionRefusedError:
        return f"{host} refuses the connection"
    except TimeoutError:
        return _no_answer(host, seconds)
    except (OSError, UnicodeError) as error:
        return f"{host} cannot be reached ({error})"
    return None


def _no_answer(host: str, seconds: float) -> str:
    """The reason given for silence."""
    return f"{host} does not answer within {seconds:g} s"
