"""What `adaptive` is made of: planned, immutable segments, the part for what is new, and how they are merged."""
