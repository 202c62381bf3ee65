"""Bytes at rest: record batches, control and metadata records, snapshots, small files."""
