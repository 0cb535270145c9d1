"""Trained translation models: their weights, vocabularies and forward passes."""
