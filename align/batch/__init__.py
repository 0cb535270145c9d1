"""Whole corpora: shards that are aligned one by one, so that work can stop, go on, and spread over machines."""
