"""Downloads, and explanations of their failures."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from privclust.core.packages import require
from privclust_papers.datasets.registry import DataError

CHUNK = 1 << 17
"""Bytes per chunk."""


def download(url: str, path: Path, timeout: tuple[float, float]) -> None:
    """Download a file, with a progress bar on a terminal.

    `timeout` is the number of seconds to wait for a connection, and between two chunks of an
    answer. Raises a requests.RequestException on failure; see `why_failed`.
    """
    downloader_class = require("pooch", "downloads").HTTPDownloader
    progress = sys.stderr.isatty()
    downloader = downloader_class(progressbar=progress, chunk_size=CHUNK, timeout=timeout)
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


def why_failed(error: Any, timeout: tuple[float, float]) -> str:
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
    if _is_unreachable(error):
        host = urlsplit(error.request.url).hostname
        if "refused" in str(error):
            return f"{host} refuses the connection"
        return f"{host} cannot be reached (is there a network?)"
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
    if isinstance(error, requests.Timeout | requests.exceptions.SSLError) or _is_unreachable(error):
        return False
    return isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError)


def _is_unreachable(error: Exception) -> bool:
    """Return whether there was no connection at all, rather than one that broke off."""
    given_up = require("urllib3.exceptions", "downloads").MaxRetryError
    return bool(error.args) and isinstance(error.args[0], given_up)
