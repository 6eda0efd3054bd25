# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""C names that a kernel may not declare, and the interface number that generated C carries."""

from __future__ import annotations

import pytest

from tinyml.ops.framework.reserved_names import check_declaration


@pytest.mark.parametrize(
    "statement",
    [
        "float y = 0;",
        "int32_t x0;",
        "const float *x = in;",
        "uint8_t scratch[4];",
        "for (int32_t x = 0; x < 3; x++) {",
        "int8_t *const y1 = buffer;",
        "struct pair x12 = {0};",
        "if (n > 0) { float y = 1;",
        "unsigned int y,",
    ],
)
def test_declarations_of_reserved_names_are_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="is reserved"):
        check_declaration(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "y[i] = x[i];",
        "return y;",
        "else y[0] = 1;",
        "float x_mean = x[0];",
        "float yy = 2 * y[0];",
        "const float *row = x + 3;",
        "memcpy(y, x, 4);",
        "float sum = scratch == 0 ? x0[1] : y1[2];",
        "}",
        "",
    ],
)
def test_uses_of_the_buffers_are_not(statement: str) -> None:
    check_declaration(statement)
