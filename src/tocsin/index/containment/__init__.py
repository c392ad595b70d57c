"""Which boxes contain a box, and which it contains: a scan, a k-d tree, a Z-curve, and groups for `adaptive`."""
