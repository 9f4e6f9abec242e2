"""Install the command ``privclust-papers`` with an editable install, which only a clone has."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PapersCommand(BuildHookInterface):
    """Add the script to editable installs: the wheel has no privclust_papers that it could run."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the script for the builder; `version` is "editable" or "standard"."""
        if version == "editable":
            build_data["shared_scripts"] = {
                "src/privclust_papers/command/privclust-papers": "privclust-papers"
            }
