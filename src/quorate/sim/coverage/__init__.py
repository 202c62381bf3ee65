"""What the simulator has reached."""
