"""An app that only sends messages and replies."""
