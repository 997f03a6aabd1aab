"""One experiment a file: its trials, the paper's own numbers, and what follows from the rows."""
