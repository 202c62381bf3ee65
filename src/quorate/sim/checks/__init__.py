"""What must hold in a simulated world after every event, and at its end.

`watch.Checks` is the observer. It keeps, from outside, a twin of every replica: what its log holds
and its disk would give back. Batches are interned in one tree for the whole world, so that equal
logs are equal objects and no check ever compares two logs entry by entry.
"""
