"""Tocsin: content-based publish/subscribe. Standing subscriptions, matched exactly and at once."""
