# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the project is made of: locked development packages, and a bill of materials with licences."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from referencing import Registry
from referencing.jsonschema import DRAFT7

from tools import sbom
from tools.environment import LOCK

ROOT = Path(__file__).resolve().parents[2]
PERMISSIVE = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "PSF-2.0", "Zlib", "CC0-1.0"}


def direct(extra: str) -> list[Requirement]:
    """What an extra of pyproject.toml requires, those of other extras that it includes, too."""
    found = []
    for text in metadata.requires("west-tinyml") or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and not marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "west-tinyml":
            found += [inner for name in requirement.extras for inner in direct(name)]
        else:
            found.append(requirement)
    return found


def test_every_development_package_is_locked() -> None:
    locked = sbom.locked()
    for requirement in direct("dev"):
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{name} is not in {LOCK.name}: its first lines say how to renew it"
        (version,) = (specifier.version for specifier in locked[name][0].specifier)
        assert version in requirement.specifier, f"{name} {version} is locked, {requirement} is required"


def test_the_lock_has_hashes_and_no_address() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert "://" not in text
    for name, (requirement, hashes) in sbom.locked().items():
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], name
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes), name


def test_what_users_install_has_permissive_licences() -> None:
    document = sbom.bill()
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    names = {component["name"] for component in document["components"]}
    assert {"numpy", "onnx", "tflite", "flatbuffers", "jinja2", "pyyaml", "rich"} <= names
    for component in document["components"]:
        (licence,) = component["licenses"]
        terms = set(re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", licence["expression"])) - {""}
        assert terms <= PERMISSIVE, f"{component['name']}: {licence['expression']}"
        assert f"| {component['name']} |" in page, f"SECURITY.md does not list {component['name']}"


def test_the_bill_lists_each_package_once() -> None:
    document = sbom.bill(dev=True)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    references = [component["bom-ref"] for component in document["components"]]
    assert len(set(references)) == len(references) > 40
    assert json.dumps(document) == json.dumps(sbom.bill(dev=True))


def test_the_bill_follows_the_schema_of_cyclonedx() -> None:
    schemas = Path(pytest.importorskip("cyclonedx.schema").__file__).parent / "_res"
    named = {
        path.name.replace(".SNAPSHOT", ""): json.loads(path.read_text()) for path in schemas.glob("*.json")
    }
    registry: Registry[Any] = Registry().with_contents(
        [(schema["$id"], schema) for schema in named.values()], default_specification=DRAFT7
    )
    validator = Draft7Validator(named["bom-1.5.schema.json"], registry=registry)
    document = sbom.bill()
    assert not list(validator.iter_errors(document))
    assert list(validator.iter_errors({**document, "components": [{"name": "no type"}]}))
