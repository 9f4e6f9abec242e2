"""Quick tests of connections, downloads, and explanations of their failures."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from privclust.core.packages import require
from privclust_papers.datasets.registry import DataError

CHUNK = 1 << 17
"""Bytes per chunk."""


def unreachable(urls: Iterable[str], seconds: float) -> dict[str, str]:
    """Return the addresses without a connection within a number of seconds, with reasons.

    All are tried at once, with one time limit. The limit includes the name lookup, which time-outs
    of sockets and requests do not cover and which can take minutes without a network. If a proxy is
    set, the connection to the proxy is tested.
    """
    urls = list(dict.fromkeys(urls))
    endpoints = {url: _endpoint(url) for url in urls}
    outcome: dict[tuple[str, int], str | None] = {}

    def connect(endpoint: tuple[str, int]) -> None:
        outcome[endpoint] = _connect(endpoint, seconds)

    threads = [
        # Daemons: a name lookup cannot be stopped, and must not delay the end of the process.
        threading.Thread(target=connect, args=(endpoint,), daemon=True)
        for endpoint in set(endpoints.values())
    ]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    reasons = {
        # A thread that has not ended has no entry.
        url: outcome.get(endpoint, _no_answer(endpoint[0], seconds))
        for url, endpoint in endpoints.items()
    }
    return {url: reason for url, reason in reasons.items() if reason is not None}


def download(url: str, path: Path, timeout: tuple[float, float]) -> None:
    """Download a file, with a progress bar on a terminal.

    `timeout` is the number of seconds to wait for a connection, and between two chunks of an
    answer. Raises a requests.RequestException on failure; see `why_failed`.
    """
    downloader_class = require("pooch", "downloads").HTTPDownloader
    is_seen = bool(sys.stderr and sys.stderr.isatty())
    downloader = downloader_class(progressbar=is_seen, chunk_size=CHUNK, timeout=timeout)
    downloader(url=url, output_file=str(path), pooch=None)


def published_md5(record: str, file: str, timeout: tuple[float, float]) -> str:
    """Return the MD5 of a file from a Zenodo record, JSON at an address.

    Raises a requests.RequestException if the request fails, a DataError if there is no MD5.
    """
    answer = require("requests", "downloads").get(record, timeout=timeout)
    answer.raise_for_status()
    try:
        checksums = {entry["key"]: entry["checksum"] for entry in answer.json()["files"]}
        kind, _, md5 = checksums[file].partition(":")
    except (ValueError, TypeError, KeyError, AttributeError):
        kind = md5 = ""
    if kind != "md5" or not re.fullmatch("[0-9a-f]{32}", md5):
        raise DataError(f"{record} publishes no MD5 of {file}")
    return md5


def why_failed(error: Exception, timeout: tuple[float, float]) -> str:
    """Return the reason of a failed download in a few words; `timeout` is that of `download`."""
    requests = require("requests", "downloads")
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
    """Return whether a failed download may succeed if repeated at once.

    True for broken connections and server errors (status 5xx); False if the file does not exist or
    the server does not answer.
    """
    requests = require("requests", "downloads")
    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code >= 500
    # Before the next test: SSLError and ConnectTimeout are also ConnectionErrors.
    if isinstance(error, requests.Timeout | requests.exceptions.SSLError):
        return False
    return isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError)


def _endpoint(url: str) -> tuple[str, int]:
    utils = require("requests.utils", "downloads")
    proxy = utils.select_proxy(url, utils.get_environ_proxies(url))
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    parts = urlsplit(proxy or url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _connect(endpoint: tuple[str, int], seconds: float) -> str | None:
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
    return f"{host} does not answer within {seconds:g} s"
