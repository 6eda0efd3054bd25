# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Write a bill of materials (CycloneDX 1.5, JSON) of the Python packages that the compiler uses.

``python -m tools.sbom [--dev] [--output FILE]``

Without --dev: what `pip install west-tinyml` brings. With it: everything that is installed of
requirements-dev.lock. Versions and licences are those of the installed packages, hashes those of the lock.
What goes into firmware is generated C and the runtime, both Apache-2.0, and CMSIS-NN where it is used;
`west spdx` lists the files of a Zephyr build.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.environment import LOCK, ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__

CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
}
"""Names of licences in package metadata as SPDX identifiers."""

WORDS = {"apache": "Apache-2.0", "mit": "MIT", "bsd": "BSD-3-Clause", "mpl": "MPL-2.0", "psf": "PSF-2.0"}


def locked() -> dict[str, tuple[Requirement, list[str]]]:
    """The packages of the lock that this platform uses: their versions, and the hashes of their files."""
    found: dict[str, tuple[Requirement, list[str]]] = {}
    joined = LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in joined.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        text, *hashes = line.split(" --hash=")
        requirement = Requirement(text.strip())
        if requirement.marker is None or requirement.marker.evaluate():
            found[canonicalize_name(requirement.name)] = (requirement, [value.strip() for value in hashes])
    return found


def licence(package: metadata.Distribution) -> str:
    """The SPDX expression of a package's licence, as far as its metadata tell; empty if they do not."""
    fields = package.metadata.json
    if expression := fields.get("license_expression"):
        return str(expression)
    for classifier in fields.get("classifier") or ():
        kind, _, name = str(classifier).rpartition(" :: ")
        if kind.startswith("License") and name in CLASSIFIERS:
            return CLASSIFIERS[name]
    first = str(fields.get("license") or "").strip().split("\n")[0].lower()
    return next((spdx for word, spdx in WORDS.items() if re.search(rf"\b{word}", first)), "")


def needed(name: str, extras: frozenset[str] = frozenset()) -> Iterator[str]:
    """The packages that one requires on this platform, and those that they require."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(name), extras)]
    while waiting:
        item = waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        for text in metadata.requires(item[0]) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*item[1], "")):
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    yield from sorted({package for package, _ in seen} - {canonicalize_name(name)})


def component(name: str, hashes: list[str]) -> dict[str, Any]:
    package = metadata.distribution(name)
    purl = f"pkg:pypi/{name}@{package.version}"
    found: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": package.version}
    found["purl"] = purl
    if spdx := licence(package):
        found["licenses"] = [{"expression": spdx}]
    if hashes:
        listed = ", ".join(value.removeprefix("sha256:") for value in hashes)
        found["properties"] = [{"name": "west-tinyml:locked-sha256", "value": listed}]
    return found


def bill(dev: bool = False) -> dict[str, Any]:
    """The whole document; the same packages give the same bytes."""
    lock = locked()
    installed = {canonicalize_name(d.metadata["Name"]) for d in metadata.distributions()}
    names = sorted(installed & set(lock)) if dev else [*needed("west-tinyml")]
    components = []
    for name in names:
        requirement, hashes = lock.get(name, (None, []))
        exact = requirement is not None and metadata.version(name) in requirement.specifier
        components.append(component(name, hashes if exact else []))
    reference = f"pkg:pypi/west-tinyml@{__version__}"
    own = {"type": "application", "bom-ref": reference, "name": "west-tinyml", "version": __version__}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**own, "purl": reference, "licenses": [{"expression": "Apache-2.0"}]}},
        "components": components,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dev", action="store_true", help="the development environment")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "sbom.json")
    options = parser.parse_args()
    document = bill(options.dev)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    silent = [c["name"] for c in document["components"] if "licenses" not in c]
    print(f"{len(document['components'])} packages in {options.output}")
    if silent:
        print(f"no licence in the metadata of: {', '.join(silent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
