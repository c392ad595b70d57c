"""A build hook of hatch: puts native kernels into a wheel, if TOCSIN_NATIVE_FOLDER names the folder that has them.

`scripts/wheel` sets it. Every other build, and `pip install -e`, makes a wheel of Python files alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAG = "cp311-abi3-manylinux_2_17_x86_64"


class NativeKernels(BuildHookInterface):
    """Adds native modules, and the tag that says where they run."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files that are put into the wheel."""
        folder = os.environ.get("TOCSIN_NATIVE_FOLDER")
        if not folder or version == "editable":
            return
        files = sorted(Path(folder).glob("*.abi3.so"))
        if not files:
            raise FileNotFoundError(f"there are no native kernels in {folder}")
        build_data["pure_python"] = False
        build_data["tag"] = TAG
        build_data["force_include"].update({str(file): f"tocsin/kernels/native/{file.name}" for file in files})
