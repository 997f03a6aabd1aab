"""Messages there and back."""
