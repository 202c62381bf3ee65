"""Run `quorate` on a machine whose faults are switched: `python faulty_node.py FOLDER TOOL ...`

While the file FOLDER/slow exists, each sync of a file takes 0.3 s longer. While FOLDER/full exists,
each write fails with ENOSPC. With FOLDER/older at the start the node is one of an older release.
"""

import errno
import os
import sys
import time

from quorate.cli.main import main
from quorate.formats import versions

SLOW_S = 0.3
OLDEST_AND_NEWEST = (7, 29)
"""Of metadata.version, for an older release."""


def install(folder):
    """Replace the calls to the operating system and what the node supports."""
    sync, write, supported = os.fdatasync, os.pwrite, versions.supported_features

    def slow_sync(descriptor):
        sync(descriptor)
        if os.path.exists(os.path.join(folder, "slow")):
            time.sleep(SLOW_S)

    def full_write(descriptor, data, position):
        if os.path.exists(os.path.join(folder, "full")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data, position)

    def older(unstable=False):
        return supported(unstable) | {"metadata.version": OLDEST_AND_NEWEST}

    os.fdatasync, os.pwrite = slow_sync, full_write
    if os.path.exists(os.path.join(folder, "older")):
        versions.supported_features = older


if __name__ == "__main__":
    install(sys.argv.pop(1))
    main()
