"""Cluster stories: commands to real cores on a network and disks in memory, and what came of it.

`names` (who is who), `log` (a disk), `node` and `cluster` (the harness), `commands` and `script`
(the language of the stories), `requests` and `text` (what is asked and told), `file` (story files).
"""
