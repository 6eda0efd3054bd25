/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_ASSEMBLY_H_
#define TINYML_ASSEMBLY_H_

#include <stddef.h>

/** Functions that are all assembly, whose parameters the compiler does not see used. */
#define TINYML_ASSEMBLY __attribute__((naked, noinline))
#define TINYML_UNSEEN   __attribute__((unused))

/** Assembly expects a member of a structure at an offset: one line for each offset that it knows.
 */
#define TINYML_OFFSET(structure, member, offset)                                                   \
	_Static_assert(offsetof(structure, member) == (offset),                                    \
		       "assembly expects " #structure "." #member " at byte " #offset)

/** Between two labels of an assembly block there must be so many bytes of code, because something
 * jumps by that number. Otherwise one of the two .org goes backwards, which assemblers refuse. (An
 * .if needs the distance of the labels before LLVM's assembler knows it.)
 */
/* clang-format off */
#define TINYML_CODE_BYTES(from, to, bytes) TINYML_CODE_BYTES_(from, to, bytes)
#define TINYML_CODE_BYTES_(from, to, bytes)                                                        \
	".org . - (" to " - " from ") + (" #bytes ")\n\t"                                          \
	".org . - (" #bytes ") + (" to " - " from ")\n\t"
/* clang-format on */

#endif /* TINYML_ASSEMBLY_H_ */
