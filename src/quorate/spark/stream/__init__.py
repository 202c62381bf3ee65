"""`spark.readStream.format("quorate-metadata")`: committed records as they come.

reader    the data source that Spark knows; `options` is what it is told
feed      what a stream reads from: a committed log that can be cut in parts
live      asking a quorum for its log; `live_leader` finds who leads, `live_feed` makes a feed of it
tail      log directories that grow; `tail_feed` makes a feed of them
"""
