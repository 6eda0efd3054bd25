# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Signatures, by each adapter: Monocypher, the PSA API over Monocypher, the PSA API of Mbed TLS."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support import slot_images as fake
from tests.support.slot_simulator import (
    ERRORS,
    PSA_HEADER,
    Case,
    build_simulator,
    verdicts,
    with_mbed_tls,
    with_monocypher,
    with_psa_shim,
)
from tinyml.slots import image
from tinyml.slots.monocypher import find_monocypher

OURS, THEIRS = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
PUBLIC = OURS.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def monocypher() -> Path:
    """Its sources: TINYML_MONOCYPHER, or those of a west workspace."""
    found = find_monocypher()
    if found is None:
        pytest.skip("no Monocypher here (TINYML_MONOCYPHER, or the group slots of a west workspace)")
    return found


def need_psa_header() -> None:
    if not PSA_HEADER.is_file():
        pytest.skip("no PSA crypto API here (Debian: libmbedtls-dev)")


def signed_by(key: Ed25519PrivateKey, value: int = 9) -> bytes:
    return fake.image_of(key=image.Key(key.sign, b""), value=value)


@pytest.mark.parametrize("adapter", ["monocypher", "psa"])
def test_signatures(tmp_path: Path, adapter: str) -> None:
    """Every bit of digest and signature counts; nothing else is accepted in their place."""
    if adapter == "psa":
        need_psa_header()
    trust = with_psa_shim(monocypher()) if adapter == "psa" else with_monocypher(monocypher())
    simulator = build_simulator(tmp_path, trust)
    whole = signed_by(OURS)
    records = 32 + fake.payload_bytes(whole) + 12
    end = records + struct.unpack_from("<H", whole, records + 2)[0]
    cases = [Case(whole), Case(signed_by(THEIRS)), Case(fake.image_of())]
    cases += [Case(fake.flipped(whole, bit)) for bit in range(8 * records, 8 * end)]
    good, forged, unsigned, *flipped = verdicts(simulator, cases, PUBLIC)
    assert good == ["0", "0", "4", "9", "0", "4"]
    assert (ERRORS[int(forged[0])], ERRORS[int(unsigned[0])]) == ("SIGNATURE", "UNSIGNED")
    for start, expected in ((records + 8, {"HASH"}), (records + 4 + 68 + 68 + 4, {"SIGNATURE"})):
        first = 8 * (start - records)
        assert {ERRORS[int(line[0])] for line in flipped[first : first + 8 * 64]} == expected
    assert all(line[1] == "0" for line in flipped)


def test_psa_without_ed25519_refuses(tmp_path: Path) -> None:
    """Mbed TLS computes SHA-512 but has no Ed25519: a signature that cannot be checked is a wrong one."""
    need_psa_header()
    simulator = build_simulator(tmp_path, with_mbed_tls())
    whole = signed_by(OURS)
    digest = 32 + fake.payload_bytes(whole) + 12 + 8
    cases = [Case(whole), Case(fake.flipped(whole, 8 * digest)), Case(fake.image_of())]
    found = [ERRORS[int(error)] for error, *_ in verdicts(simulator, cases, PUBLIC)]
    assert found == ["SIGNATURE", "HASH", "UNSIGNED"]
