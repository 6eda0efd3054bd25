/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <tinyml/registry.h>

const struct tinyml_model *tinyml_find(const char *name)
{
	TINYML_FOREACH_MODEL(entry)
	{
		if (strcmp(entry->model->name, name) == 0) {
			return entry->model;
		}
	}
	return NULL;
}
