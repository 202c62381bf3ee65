"""Scenarios: commands to real cores with an in-memory network and disks, and their outcomes.

names             nodes and directories
log               a disk
node, cluster     the harness
commands, script  the language
requests, text    requests and output
file              scenario files
worlds            simulated worlds as files
"""
