/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <functional>

namespace esphome
{

template <typename... Ts> class Trigger
{
      public:
	void trigger(const Ts &...x)
	{
		if (this->action) {
			this->action(x...);
		}
	}
	std::function<void(const Ts &...)> action;
};

template <typename... Ts> class Action
{
      public:
	virtual ~Action() = default;
	virtual void play(const Ts &...x) = 0;
};

template <typename... Ts> class Condition
{
      public:
	virtual ~Condition() = default;
	virtual bool check(const Ts &...x) = 0;
};

} // namespace esphome
