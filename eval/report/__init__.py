"""The report: one HTML page with the table of systems and a browser of sentence pairs."""
