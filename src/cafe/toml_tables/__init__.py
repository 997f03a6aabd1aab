"""TOML tables: reading them, validating their keys, and calling what they describe."""
