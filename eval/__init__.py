"""What alignments are worth: AER, comparison of methods, evaluation of explanations."""
