/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Control and status registers of RISC-V. Since 2019 they are an extension of their own, which
 * -march=rv32imac does not include. */

#ifndef TINYML_HARNESS_CSR_H_
#define TINYML_HARNESS_CSR_H_

#define CSR_READ(name, value)                                                                      \
	__asm volatile(".option push\n.option arch, +zicsr\ncsrr %0, " name "\n.option pop"        \
		       : "=r"(value))

#define CSR_WRITE(name, value)                                                                     \
	__asm volatile(".option push\n.option arch, +zicsr\ncsrw " name ", %0\n.option pop"        \
		       :                                                                           \
		       : "r"(value))

#endif /* TINYML_HARNESS_CSR_H_ */
