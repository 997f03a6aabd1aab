"""Speed benchmarks: growth and ratios from interleaved measurements; nothing passes or fails."""
