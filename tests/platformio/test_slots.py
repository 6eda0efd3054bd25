# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project without a model: it takes one into a slot while it runs, with nothing but plain C."""

from __future__ import annotations

import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.platformio.conftest import REPOSITORY, MakeProject, Project
from tests.platformio.digits import QEMU
from tinyml.pipeline import Options
from tinyml.slots.image import Key
from tinyml.slots.monocypher import find_monocypher
from tinyml.slots.pack import Slot, pack_model
from tinyml.slots.version import Version

FIRST, SECOND = 0x21000000, 0x21008000  # RAM that plays flash
MAIN = """
#include <stdio.h>
#include <string.h>

#include <tinyml/slots.h>

#include "images.h"

#define BYTES 0x8000u

TINYML_SLOT_DEFINE(digits, 4096, 0);

static int erase(void *start, uint32_t offset, uint32_t bytes)
{
    memset((uint8_t *)start + offset, 0xff, bytes);
    return 0;
}

static int write(void *start, uint32_t offset, const void *data, uint32_t bytes)
{
    memcpy((uint8_t *)start + offset, data, bytes);
    return 0;
}

static const struct tinyml_flash flash[2] = {
    {erase, write, (void *)FIRST, 1024, 8, NULL},
    {erase, write, (void *)SECOND, 1024, 8, NULL},
};
#ifdef SIGNED
#include <tinyml/slot_trust.h>

static const struct tinyml_slot_trust trust = {tinyml_slot_verify_monocypher, public_key};
#endif

static struct tinyml_slots slots = {
#ifdef SIGNED
    .trust = &trust,
#endif
    .region = {{(void *)FIRST, FIRST, BYTES, &flash[0]}, {(void *)SECOND, SECOND, BYTES, &flash[1]}},
};

static int receive(const uint8_t *image, uint32_t bytes)
{
    static struct tinyml_update update;
    int error = tinyml_update_begin(&update, &slots, bytes, false);

    error = error != 0 ? error : tinyml_update_write(&update, image, bytes);
    error = error != 0 ? error : tinyml_update_finish(&update);
    error = error != 0 ? error : tinyml_slots_open(&slots, &digits);
    return error != 0 ? error : tinyml_slots_confirm(&slots);
}

static int zero(void) /* what the model sees in a drawing of a zero */
{
    float *input = digits.model.inputs[0].data;
    const float *output = digits.model.outputs[0].data;
    int best = 0;

    for (int i = 0; i < 64; i++) {
        const int y = i / 8, x = i % 8, border = (y == 1 || y == 6) + (x == 2 || x == 5);
        input[i] = border == 1 && x > 1 && x < 6 && y > 0 && y < 7 ? 1.0f : 0.0f;
    }
    digits.model.run();
    for (int i = 1; i < 10; i++) {
        best = output[i] > output[best] ? i : best;
    }
    return best;
}

int main(void)
{
    erase((void *)FIRST, 0, BYTES);
    erase((void *)SECOND, 0, BYTES);
    printf("empty: %s\\n", tinyml_slot_error_text(tinyml_slots_open(&slots, &digits)));
    printf("version 1: %s\\n", tinyml_slot_error_text(receive(first, sizeof(first))));
    printf("%s sees a %d\\n", digits.model.name, zero());
    printf("version 2: %s\\n", tinyml_slot_error_text(receive(second, sizeof(second))));
    printf("%s sees a %d\\n", digits.model.name, zero());
    printf("version 1: %s\\n", tinyml_slot_error_text(receive(first, sizeof(first))));
    return 0;
}
"""


def images(first: Key | None = None, second: Key | None = None) -> str:
    """Version 1 for the first slot and version 2 for the second one, as C."""
    model = REPOSITORY / "samples" / "digits" / "model.onnx"
    slots = (Slot("a", FIRST), Slot("b", SECOND))
    text = f"#define FIRST {FIRST:#x}u\n#define SECOND {SECOND:#x}u\n"
    for name, slot, version, key in (("first", "a", 1, first), ("second", "b", 2, second)):
        options = Options(name="digits", target="cortex-m3")
        image = pack_model(model, options, slots, Version(version), key).pack.images[slot]
        text += f"static const uint8_t {name}[] = {{{','.join(map(str, image))}}};\n"
    return text


def check(project: Project, expected: list[str]) -> None:
    project.write("src/main.c", MAIN)
    said = project.build("-t", "qemu")
    assert [line for line in said.splitlines() if line in expected] == expected, said


def test_a_model_arrives(make_project: MakeProject) -> None:
    project = make_project(QEMU)
    project.write("src/images.h", images())
    expected = [
        "empty: no model that may be used",
        "version 1: ok",
        "digits sees a 0",
        "version 2: ok",
        "digits sees a 0",
        "version 1: not newer than the model in use",
    ]
    check(project, expected)


def test_signatures(make_project: MakeProject) -> None:
    """Monocypher is a library of the project; a model that somebody else signed is refused."""
    monocypher = find_monocypher()
    if monocypher is None:
        pytest.skip("no Monocypher here (TINYML_MONOCYPHER, or the group slots of a west workspace)")
    ours, theirs = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = ours.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    project = make_project(QEMU + "build_flags = -I lib/monocypher/src -I lib/monocypher/src/optional\n")
    shutil.copytree(monocypher, project.folder / "lib" / "monocypher" / "src")
    key = f"#define SIGNED 1\nstatic const uint8_t public_key[] = {{{','.join(map(str, public))}}};\n"
    project.write("src/images.h", key + images(Key(ours.sign, b""), Key(theirs.sign, b"")))
    expected = [
        "empty: no model that may be used",
        "version 1: ok",
        "digits sees a 0",
        "version 2: signed with another key, or forged",
        "digits sees a 0",
    ]
    check(project, expected)
