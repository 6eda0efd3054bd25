# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A device on which everything happens at once: threads, the shell, the host protocol, updates, resets.

``boards.py`` starts the image of tests/zephyr/races, ``client.py`` is a computer that does one thing after
another, damaged frames among them, ``campaign.py`` both at once and the judgement.
"""
