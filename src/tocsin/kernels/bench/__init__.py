"""Kernels that exist to be compared with: engines by hand for one workload, older strategies, whole experiments."""
