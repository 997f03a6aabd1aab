"""One experiment per file: its trials, the paper's numbers, and the conclusions from the rows."""
