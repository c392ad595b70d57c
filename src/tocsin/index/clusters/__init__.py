"""What `counting`, `propagation`, `static` and `dynamic` share: interned predicates and clusters of boxes."""
