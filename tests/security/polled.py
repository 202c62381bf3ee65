"""One look at the stores of a context, without a loop."""

from quorate.security.tls.reload import read_here


def poll(source, values=None, reader=read_here):
    """True when something else is in use now, False when it is refused, None when nothing changed."""
    change = source.change(values)
    return None if change is None else source.use(change, source.read(change, reader))
