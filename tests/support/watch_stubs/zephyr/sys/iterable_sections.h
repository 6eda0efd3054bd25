/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STUB_ITERABLE_SECTIONS_H_
#define STUB_ITERABLE_SECTIONS_H_

#define STRUCT_SECTION_ITERABLE(type, name) struct type name __attribute__((used))

#endif /* STUB_ITERABLE_SECTIONS_H_ */
