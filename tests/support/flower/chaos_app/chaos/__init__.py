"""An app for tests: it learns digits, and does what a script tells it to."""
