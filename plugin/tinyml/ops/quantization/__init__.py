"""The borders between real numbers and integers."""
