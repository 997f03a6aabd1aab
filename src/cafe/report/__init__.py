"""Results for people: tables in the terminal, pictures, one self-contained HTML page."""
