/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of models that an Arm Ethos-U NPU computes: from <tinyml/ethos_u.h> to Arm's driver. */

#include <tinyml/ethos_u.h>
#include <tinyml/tinyml.h>

#include <ethosu_driver.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/util.h>

LOG_MODULE_REGISTER(tinyml_ethos_u, CONFIG_TINYML_LOG_LEVEL);

static uint64_t address(const void *memory)
{
	return (uint64_t)(uintptr_t)memory;
}

int tinyml_ethos_u_run(const struct tinyml_ethos_u *part, const void *input, void *output,
		       void *scratch)
{
	/* The regions of the command stream. The third, fast memory, is not used: its size is 0 so
	 * that the driver accepts any. Sizes are also what the driver's cache maintenance covers;
	 * the weights do not change. */
	uint64_t bases[] = {address(part->weights), address(scratch), address(scratch),
			    address(input), address(output)};
	const size_t sizes[] = {0, part->scratch_bytes, 0, part->input_bytes, part->output_bytes};
	struct ethosu_driver *driver;
	int status;

	TINYML_ASSERT(TINYML_ALIGNED(part->commands, TINYML_ETHOS_U_ALIGNMENT));
	driver = ethosu_reserve_driver();
	if (driver == NULL) {
		LOG_ERR("no Ethos-U driver is available");
		return TINYML_ENPU;
	}
	status = ethosu_invoke_v3(driver, part->commands, (int)part->commands_bytes, bases, sizes,
				  ARRAY_SIZE(bases), NULL);
	ethosu_release_driver(driver);
	if (status != 0) {
		LOG_ERR("the NPU did not complete its part (%d)", status);
		return TINYML_ENPU;
	}
	return 0;
}
