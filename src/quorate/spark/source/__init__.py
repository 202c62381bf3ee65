"""`spark.read.format("quorate-metadata")`: logs and snapshots of many replicas as rows.

options   what the source is told, checked
plan      options and paths become pieces of files, and pieces become partitions
read      what a task does with its pieces
where     the option that says which rows are wanted; `filters` what it lets through unread
"""
