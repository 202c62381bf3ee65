"""The deterministic simulator: a seed becomes a plan, a world runs it, observers check it."""
