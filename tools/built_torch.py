"""Adds the torch that the wheel is compiled against to its dependencies.

libtorch keeps no binary compatibility from one release to the next, so a wheel needs the very release that it was
built with. Read by scikit-build-core, see [[tool.dynamic-metadata]] in pyproject.toml.
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

SUPPORTED = "torch>=2.11,<2.16"


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, list[str]]:
    try:
        # The local part (+cpu, +cu130) tells the build's device support, not its binary interface.
        release = version("torch").partition("+")[0]
    except PackageNotFoundError:  # a source distribution made without torch
        return {"dependencies": [SUPPORTED]}
    return {"dependencies": [f"torch=={release}"]}


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:
    return {"dependencies": True}
