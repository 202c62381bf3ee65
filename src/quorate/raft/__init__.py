"""The pure consensus core: events in, a Ready out. No clock, chance, socket, file or logger."""
