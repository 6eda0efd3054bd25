/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace esphome::microphone
{

class MicrophoneSource
{
      public:
	using Callback = std::function<void(const std::vector<uint8_t> &)>;

	void add_data_callback(Callback callback)
	{
		this->callback = callback;
	}
	void start()
	{
		this->running = true;
	}
	void stop()
	{
		this->running = false;
	}

	Callback callback;
	bool running{false};
};

} // namespace esphome::microphone
