"""Operators that compute each output element from the elements at the same place."""
