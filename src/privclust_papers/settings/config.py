"""Config files: loading and validation, with errors of one line.

The schemas are in workflow/schemas. A message names the file, the key, its value, and the allowed
values.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from privclust.core.packages import require

Formats = Mapping[str, Callable[[str], object]]


class ConfigError(Exception):
    """A config file cannot be used; the message is one line."""


def load_yaml(path: str | os.PathLike[str]) -> Any:
    """Read a YAML file.

    Raises a ConfigError if the file is missing or not YAML, or repeats a key of a mapping.
    """
    yaml = require("yaml", "config files")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return yaml.load(text, _loader_of_single_keys(yaml))
    except RecursionError:
        raise ConfigError(f"{path}: not YAML (nested too deeply)") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: not YAML ({reason})") from None


def _loader_of_single_keys(yaml: Any) -> type:
    """Return a safe loader that refuses repeated keys, of which PyYAML would take the last."""

    composer, parser = yaml.composer.Composer, getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # deep nesting overflows the stack of the composer in C, without an exception
    bases = (parser,) if issubclass(parser, composer) else (composer, parser)

    class Loader(*bases):  # type: ignore[misc]
        def __init__(self, text):
            parser.__init__(self, text)
            composer.__init__(self)

        def compose_mapping_node(self, anchor):
            node = super().compose_mapping_node(anchor)
            # As text, because keys such as lists cannot be counted.
            names = Counter(str(key.value) for key, _ in node.value)
            twice = sorted(name for name, times in names.items() if times > 1)
            if twice:
                problem = f"{', '.join(twice)} is given twice"
                raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
            return node

    return Loader


def validate(
    document: Any, schema: Mapping[str, Any], where: str, formats: Formats = MappingProxyType({})
) -> None:
    """Check a document, named `where` in messages, against a JSON schema (draft 2020-12).

    `formats` has a function for each ``format`` in the schema, which raises a ValueError for a
    wrong text. Raises a ConfigError that names the first wrong key, its value, and the allowed
    values.
    """
    jsonschema = require("jsonschema", "config files")
    checker = jsonschema.FormatChecker(())
    for name, check in formats.items():
        # `check=check` binds the function of this turn; a closure would see only the last one.
        checker.checks(name, ValueError)(lambda text, check=check: check(text) is not None)
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    # Sorted, so that the same fault gives the same message in each run.
    errors = sorted(validator.iter_errors(document), key=lambda error: list(map(str, error.path)))
    if errors:
        error = jsonschema.exceptions.best_match(errors)
        raise ConfigError(f"{where}: {_explain(error)}")


def load_validated(
    path: str | os.PathLike[str],
    schema_path: str | os.PathLike[str],
    formats: Formats = MappingProxyType({}),
) -> Any:
    """Read a YAML file and check it against the schema in another YAML file; see `validate`."""
    document = load_yaml(path)
    validate(document, load_yaml(schema_path), str(path), formats)
    return document


def _explain(error: Any) -> str:
    """Explain a jsonschema error: the key, its value, and the allowed values."""
    key = ""
    for part in error.absolute_path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}"
    key = key.lstrip(".") or "(top level)"
    rule, value = error.validator, error.validator_value
    if rule == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(allowed))
        return f"{key}: unknown key {unknown[0]!r}; allowed are {', '.join(allowed)}"
    if rule == "required":
        missing = next(name for name in value if name not in error.instance)
        return f"{key}: the key {missing!r} is missing; it needs {', '.join(value)}"
    if rule == "format":
        return f"{key}: {error.cause}"
    if rule == "dependentRequired":
        return f"{key}: {error.message}; give both or neither"
    choices = ", ".join(map(_short, value)) if rule == "enum" else ""
    kinds = [value] if isinstance(value, str) else value if rule == "type" else []
    may_be = {
        "enum": f"one of {choices}",
        "type": f"of type {' or '.join(kinds)}",
        "minimum": f"at least {value}",
        "exclusiveMinimum": f"more than {value}",
        "maximum": f"at most {value}",
        "minItems": f"a list of at least {value} entries",
        "minProperties": f"a mapping of at least {value} entries",
        "minLength": f"a text of at least {value} characters",
    }.get(rule, error.message)
    may_be = error.schema.get("description", may_be)
    return f"{key}: got {_short(error.instance)}; it must be {may_be}"


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
