"""The same seeded requests to a Java controller and to ours: same responses, same records.

PYTHONPATH=tests python -m differential --seeds 0..10 --requests 3000

- `side`: one controller as a process, its log as it grows, and names for what it chose at random.
- `canonical`: responses and records without what chance and time decide.
- `draw_*`: the generator; it draws from the image of the Java controller, by seed.
- `run`: one seed; the first difference ends it.
"""
