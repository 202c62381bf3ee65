"""From the bytes of batches to columns; most of the time of a job is spent here.

batches   batches of a log or a snapshot as Arrow record batches: the whole way
rows      the same taken apart row by row, for what is unusual
groups    many records of one type and version at once; `walk` finds their fields, `arrays` fills
facts     the key facts of a record: which topic, partition, broker it is about
columns   the columns of `quorate-metadata`; `typed` those of one record type
"""
