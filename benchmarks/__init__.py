"""Speed, measured in one interleaved run: growth and ratios, never a pass or a fail."""
