"""Plans: what a simulated world holds, drawn from a seed or read from a file."""
