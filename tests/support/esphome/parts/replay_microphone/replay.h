/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "esphome/components/microphone/microphone.h"
#include "esphome/core/component.h"

namespace esphome::replay_microphone
{

/// Gives 20 ms of a WAV file in every loop; the program ends with the file.
class Replay : public microphone::Microphone, public Component
{
      public:
	explicit Replay(const char *path) : path_(path)
	{
	}
	void setup() override
	{
		this->audio_stream_info_ = audio::AudioStreamInfo(16, 1, 16000);
	}
	void start() override
	{
		this->file_ = fopen(this->path_, "rb");
		fseek(this->file_, 44, SEEK_SET); // past the header
		this->state_ = microphone::STATE_RUNNING;
	}
	void stop() override
	{
		this->state_ = microphone::STATE_STOPPED;
	}
	void loop() override
	{
		std::vector<uint8_t> block(640);

		if (!this->is_running()) {
			return;
		}
		if (fread(block.data(), 1, block.size(), this->file_) < block.size()) {
			printf("the recording has ended\n");
			exit(0);
		}
		this->data_callbacks_.call(block);
	}

      protected:
	const char *path_;
	FILE *file_{nullptr};
};

} // namespace esphome::replay_microphone
