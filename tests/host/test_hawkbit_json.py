# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the hawkBit client reads in a server's answers, in parts of any length. Under sanitizers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.support.programs import build_program
from tinyml.harness.program_build import SANITIZERS, WARNINGS

ROOT = Path(__file__).parents[2]
DOCUMENTS = int(os.environ.get("TINYML_FUZZ_HAWKBIT", "3000"))


class Answer(NamedTuple):
    complete: str
    deployment: str
    cancel: str
    attributes: str
    sleep: str
    id: str
    skip: str
    download: str
    bytes: str


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    source = ROOT / "zephyr_module" / "src"
    files = [ROOT / "tests" / "support" / "hawkbit_json_main.c", source / "hawkbit_json.c"]
    flags = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS)
    return build_program(folder / "program", files, flags, (source,))


def read(program: Path, documents: Sequence[bytes], part: str = "") -> list[Answer]:
    given = b"".join(b"%d\n%s" % (len(document), document) for document in documents)
    done = subprocess.run([program, part], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode(errors="replace").split("\n")[:-1]
    return [Answer(*line.split("|", 8)) for line in lines]


def read_one(program: Path, document: Any, part: str = "") -> Answer:
    (answer,) = read(program, [json.dumps(document).encode()], part)
    assert answer.complete == "1"
    return answer


def file(name: str, size: int, **links: str) -> dict[str, Any]:
    return {
        "filename": name,
        "hashes": {"sha1": "0" * 40, "md5": "0" * 32},
        "size": size,
        "_links": {key.replace("_", "-"): {"href": href} for key, href in links.items()},
    }


def deployment(*chunks: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"id": "8", "deployment": {"download": "forced", "update": "forced", "chunks": chunks, **more}}


def test_the_resource_of_a_device(program: Path) -> None:
    links = {
        "deploymentBase": {"href": "http://a/1?c=-2&d=\u00e4"},
        "configData": {"href": 'http://a/"q"'},
        "other": {"href": "http://a/2"},
    }
    found = read_one(program, {"config": {"polling": {"sleep": "12:34:56"}}, "_links": links})
    assert found[1:5] == ("http://a/1?c=-2&d=?", "", 'http://a/"q"', str(45296))
    assert read_one(program, {"_links": {"cancelAction": {"href": "c"}}}).cancel == "c"
    assert read_one(program, {"id": "11", "cancelAction": {"stopId": "12"}}).id == "12"
    for wrong in ("1:2:3", "aa:bb:cc", "00:10", "", "00:00:00x"):
        assert read_one(program, {"config": {"polling": {"sleep": wrong}}}).sleep == "0"
    long = {"_links": {"deploymentBase": {"href": "http://a/" + "x" * 300}}}
    assert read_one(program, long).deployment == "", "an address that is cut off is none"


def test_escapes(program: Path) -> None:
    text = rb'{"\u0069d": "1\/2\u00412\n"}'
    (found,) = read(program, [text.replace(rb"\n", b"")])
    assert found.id == "1/2A2"


def test_the_pack_of_a_deployment(program: Path) -> None:
    pack = file("m.tmodel", 77, download="https://a/m", download_http="http://a/m", md5sum="https://a/m.MD5")
    firmware = {"part": "os", "artifacts": [file("zephyr.bin", 5, download_http="http://a/z")]}
    model = {"part": "bApp", "version": "1", "artifacts": [file("a.txt", 3, download_http="t"), pack]}
    found = read_one(program, deployment(firmware, model))
    assert (found.id, found.download, found.bytes, found.skip) == ("8", "http://a/m", "77", "0")
    assert read_one(program, deployment(model, firmware), "bApp").bytes == "77"
    assert read_one(program, deployment(model, firmware), "os").bytes == "0"
    backwards = dict(reversed(model.items()))
    assert read_one(program, deployment(backwards, firmware), "bApp").download == "http://a/m"
    secure = {"part": "bApp", "artifacts": [file("m.tmodel", 9, download="https://a/m")]}
    assert read_one(program, deployment(secure)).download == "https://a/m"
    assert read_one(program, deployment(firmware)).bytes == "0"
    assert read_one(program, deployment(model, update="skip")).skip == "1"
    for size in (0, -1, 2**32):
        wrong = {"part": "bApp", "artifacts": [file("m.tmodel", size, download="https://a/m")]}
        assert read_one(program, deployment(wrong)).bytes == "0"


def test_what_is_not_json(program: Path) -> None:
    wrong = [b"", b"{", b"}", b"[1,]", b'{"a"}', b'{"a":1,}', b'{"a":1]', b'{"id":"1"} x', b'"\\q"', b'"\n"']
    wrong += [b"[" * 20 + b"]" * 20, b'{"id":"\\u00g0"}', b"{a:1}", b"<html>"]
    assert [answer.complete for answer in read(program, wrong)] == ["0"] * len(wrong)


def test_any_document(program: Path) -> None:
    """Whatever Python reads, the client reads, unless it is nested deeply; it survives the rest."""
    random = Random(5)
    pack = file("m.tmodel", 77, download="https://a/m", download_http="http://a/m")
    whole = json.dumps(deployment({"part": "bApp", "artifacts": [pack]})).encode()
    documents = []
    for _ in range(DOCUMENTS):
        text = bytearray(whole)
        for _ in range(random.randint(1, 6)):
            at = random.randrange(len(text))
            kind = random.randrange(4)
            if kind == 0:
                text[at] = random.randrange(256)
            elif kind == 1:
                del text[at : at + random.randint(1, 20)]
            elif kind == 2:
                text[at:at] = random.choice((b"[", b"{", b'"', b"\\", b"]", b"}", b",", b"null", b"\\u0000"))
            else:
                text[at:at] = text[: random.randrange(len(text))]
        documents.append(bytes(text))
    answers = read(program, documents)
    assert len(answers) == DOCUMENTS
    read_by_both = 0
    for document, answer in zip(documents, answers, strict=True):
        try:
            json.loads(document)
        except (ValueError, UnicodeDecodeError):
            continue
        if b"NaN" not in document and b"Infinity" not in document:
            assert answer.complete == "1", document
            read_by_both += 1
    assert read_by_both > DOCUMENTS // 100
