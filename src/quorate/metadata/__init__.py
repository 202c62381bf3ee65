"""What the log means: one immutable image, and the rules by which records change it."""
