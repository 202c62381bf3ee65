"""Scenarios: commands to real cores with an in-memory network and disks, and their outcomes.

`names` (nodes and directories), `log` (a disk), `node` and `cluster` (the harness), `commands` and
`script` (the language), `requests` and `text` (requests and output), `file` (scenario files),
`worlds` (simulated worlds as files).
"""
