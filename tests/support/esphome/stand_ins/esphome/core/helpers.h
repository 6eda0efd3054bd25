/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

namespace esphome
{

template <typename T> class Parented
{
      public:
	void set_parent(T *parent)
	{
		this->parent_ = parent;
	}

      protected:
	T *parent_{nullptr};
};

} // namespace esphome
