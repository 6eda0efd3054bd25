/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace esphome::audio
{

/// What ESPHome's microphone source asks of a stream; samples have 16 bits here.
class AudioStreamInfo
{
      public:
	AudioStreamInfo(uint8_t bits = 16, uint8_t channels = 1, uint32_t rate = 16000)
	    : bits_(bits), channels_(channels), rate_(rate)
	{
	}
	size_t samples_to_bytes(uint32_t samples) const
	{
		return samples * this->bits_ / 8;
	}
	size_t frames_to_bytes(uint32_t frames) const
	{
		return frames * this->channels_ * this->bits_ / 8;
	}
	uint32_t bytes_to_frames(size_t bytes) const
	{
		return bytes / this->frames_to_bytes(1);
	}
	uint8_t get_channels() const
	{
		return this->channels_;
	}
	uint32_t get_sample_rate() const
	{
		return this->rate_;
	}

      protected:
	uint8_t bits_, channels_;
	uint32_t rate_;
};

inline int32_t unpack_audio_sample_to_q31(const uint8_t *data, size_t)
{
	int16_t value;
	memcpy(&value, data, sizeof(value));
	return (int32_t)value * 65536;
}

inline void pack_q31_as_audio_sample(int32_t sample, uint8_t *data, size_t)
{
	const int16_t value = sample >> 16;
	memcpy(data, &value, sizeof(value));
}

} // namespace esphome::audio
