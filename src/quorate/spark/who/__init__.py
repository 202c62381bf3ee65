"""Who made a change: changes of the metadata joined with what nodes logged about requests.

layout       the log4j layout of a line: time, level, logger, message
lines        the records of a log file, piece by piece, with their byte positions
messages     lines of the authorizer and of the controller
bodies       lines of the request log, with the requests' bodies
keys         the words by which changes and lines are joined
causes       what can cause an event, and which evidence to look for
attribution  from the evidence to a principal, or to none
logs         log files as data frames of evidence
join         changes joined with evidence
job          the whole
"""

from __future__ import annotations

from quorate.spark.who.job import LogPaths, WhoAnswer, who
from quorate.spark.who.logs import Reading

__all__ = ["LogPaths", "Reading", "WhoAnswer", "who"]
