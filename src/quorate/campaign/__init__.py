"""Campaigns of the simulator as Spark jobs: seeds in; results, coverage and failing traces out.

`job.run` runs them, `compare.compare` holds the results of versions against each other, and
`page.page` draws that. `results` keeps the rows, `failures` traces and shrinks what failed, and
`totals` says what all rows add up to. `spread` starts a process of `worker` for each task.

Nothing is imported here: a worker must be able to plant a bug before the code is in memory.
"""
