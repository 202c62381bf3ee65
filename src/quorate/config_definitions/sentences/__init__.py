"""One sentence for each config: lines of `name: sentence`, by theme."""
