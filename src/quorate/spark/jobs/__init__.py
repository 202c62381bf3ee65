"""The jobs that look after a warehouse; those that answer have packages of their own.

follow       what is committed comes into the tables, cluster by cluster
checkpoints  how far each of them has come
compact      many small files become few
repair       what a disk or a copy has lost is made again, or forgotten and told
"""
