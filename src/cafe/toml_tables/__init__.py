"""Read TOML tables, validate their keys, and call the functions that they describe."""
