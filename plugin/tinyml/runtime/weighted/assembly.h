/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TINYML_ASSEMBLY_H_
#define TINYML_ASSEMBLY_H_

/** Functions that are all assembly, whose parameters the compiler does not see used. */
#define TINYML_ASSEMBLY __attribute__((naked, noinline))
#define TINYML_UNSEEN   __attribute__((unused))

#endif /* TINYML_ASSEMBLY_H_ */
