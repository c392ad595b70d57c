"""What the index cannot decide: predicates evaluated on the few candidates, once for all subscriptions that share
them."""
