"""What the active controller decides: pure functions from image and request to records."""
