"""Text and links on disk: the lowest layer, which imports neither `align` nor `eval`."""
