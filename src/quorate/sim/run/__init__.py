"""Running worlds: one, many, campaigns, shrinking."""
