"""Kernels of the `adaptive` engine: how a segment lies in memory, is built, asked, and merged."""
