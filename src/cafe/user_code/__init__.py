"""Functions in the files of users: found by name, imported, called, with errors that explain."""
