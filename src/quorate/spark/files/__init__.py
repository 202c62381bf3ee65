"""Where logs lie, before anybody asks what they mean.

paths     files wherever they are: local, in an object store
archives  tars and zips as directories, and the shelf from which every file is read; `zips` mends
scan      batches of a file, one after the other, over whatever is damaged between them
layout    which directories of a tree hold a metadata log, of which node and cluster
whole     files that are there as they were, or whole and new
"""
