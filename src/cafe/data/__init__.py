"""Datasets, and how their examples are spread over clients."""
