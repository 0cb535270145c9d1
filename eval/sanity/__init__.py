"""Sanity checks: of the component that is read (attention), and of the methods that read it."""
