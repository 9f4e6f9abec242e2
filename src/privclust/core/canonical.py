"""Canonical JSON, which is the key of digests and random streams."""

from __future__ import annotations

import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, no NaN.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": [1.5, None]})
    '{"a":[1.5,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
