/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

namespace esphome
{

namespace setup_priority
{
const float AFTER_CONNECTION = 100.0f;
}

class Component
{
      public:
	virtual ~Component() = default;
	virtual void setup()
	{
	}
	virtual void loop()
	{
	}
	virtual void dump_config()
	{
	}
	virtual float get_setup_priority() const
	{
		return 0;
	}
	void mark_failed()
	{
		this->failed_ = true;
	}
	bool is_failed() const
	{
		return this->failed_;
	}

      protected:
	bool failed_{false};
};

} // namespace esphome
