"""What finished runs add up to: finding runs, grouping them, means with standard errors."""
