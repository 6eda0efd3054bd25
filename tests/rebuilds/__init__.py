# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Random walks through the edits of a user, to find builds that use what is out of date, or are stuck."""
