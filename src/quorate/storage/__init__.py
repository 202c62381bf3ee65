"""Where the log is kept: one contract, real files and an in-memory double."""
