"""The debug mode of a node: what it believes of its log is compared with the files after each step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from quorate.config.node_config import NodeConfig
from quorate.formats.files import PARTITION_DIRECTORY
from quorate.replica.replica import Replica
from quorate.server.driver import Driver
from quorate.server.logs import LOG
from quorate.storage.api import Storage
from quorate.verify.log_audit import LogAudit
from quorate.verify.medium import Medium, PathDirectory

VERIFY_LOG: Final = "QUORATE_VERIFY_LOG"


def verify_log(driver: Driver, replica: Replica, storage: Storage, config: NodeConfig) -> None:
    """Let the driver verify its log where the environment has QUORATE_VERIFY_LOG.

    `storage` is open, and the replica has taken no step. A wrong belief stops the node with a
    message that names it. Raises LogBeliefError where recovery has one already.
    """
    if not os.environ.get(VERIFY_LOG):
        return
    directory = PathDirectory(Path(config.metadata_log_dir) / PARTITION_DIRECTORY)
    audit = LogAudit(storage, Medium(directory), replica.core.state.log)
    audit.recovered()
    driver.verify_log(audit)
    LOG.warning(
        "%s is set: the metadata log is compared with its files after every step, which is slow",
        VERIFY_LOG,
    )
