# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of an image, in CycloneDX, written by that project's own library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tinyml.base.errors import ToolError

PACKAGES_OF_PYTHON = "pkg:pypi/"


def bill(chain: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """JSON of CycloneDX 1.5. It has no time, and its number comes from the image: same image, same text."""
    try:
        from cyclonedx.model import HashAlgorithm, HashType
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.model.license import LicenseExpression
        from cyclonedx.output.json import JsonV1Dot5
    except ImportError:
        raise ToolError(
            "the bill of materials requires cyclonedx-python-lib, which is not installed",
            "pip install 'west-tinyml[evidence]'",
        ) from None

    def part(kind: ComponentType, name: str, link: Mapping[str, Any] | None = None, **more: Any) -> Component:
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=link["sha256"])] if link else ()
        return Component(type=kind, name=name, hashes=hashes, bom_ref=f"{kind.value}:{name}", **more)

    own = LicenseExpression("Apache-2.0")
    parts = []
    for model in chain["models"]:
        parts += [part(ComponentType.MACHINE_LEARNING_MODEL, row["file"], row) for row in model["files"]]
        parts += [part(ComponentType.FILE, row["file"], row) for row in model["generated"]]
    kernels = {row["file"]: row for model in chain["models"] for row in model["kernels"]}
    parts += [part(ComponentType.FILE, name, row, licenses=[own]) for name, row in kernels.items()]
    if any(model["cmsis_nn"] for model in chain["models"]):
        parts.append(part(ComponentType.LIBRARY, "CMSIS-NN", licenses=[LicenseExpression("Apache-2.0")]))
    if "Zephyr" in versions:
        parts.append(part(ComponentType.OPERATING_SYSTEM, "Zephyr", version=versions["Zephyr"]))
    tools = [
        part(ComponentType.APPLICATION, name, version=version)
        for name, version in versions.items()
        if name not in ("Zephyr", "computer")
    ]
    image = part(ComponentType.FIRMWARE, chain["image"]["file"], chain["image"])
    document = Bom(components=parts, serial_number=uuid5(NAMESPACE_URL, f"sha256:{chain['image']['sha256']}"))
    document.metadata.component = image
    document.metadata.tools.components.update(tools)
    document.register_dependency(image, parts)
    return _without_time(JsonV1Dot5(document).output_as_string(indent=1))


def _without_time(text: str) -> str:
    import json

    data = json.loads(text)
    data["metadata"].pop("timestamp", None)
    return json.dumps(data, indent=1, sort_keys=True) + "\n"
