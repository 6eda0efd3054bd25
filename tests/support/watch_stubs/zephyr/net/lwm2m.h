/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STUB_LWM2M_H_
#define STUB_LWM2M_H_

#include <stdint.h>

struct lwm2m_obj_path {
	uint16_t obj_id, obj_inst_id, res_id, res_inst_id;
};

#define LWM2M_OBJ(object, instance, resource, part)                                                \
	((struct lwm2m_obj_path){object, instance, resource, part})

int lwm2m_set_opaque(const struct lwm2m_obj_path *path, const char *data_ptr, uint16_t data_len);

#endif /* STUB_LWM2M_H_ */
