"""Kernels that take many expressions apart at once."""
