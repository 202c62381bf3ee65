"""Who did it: changes of the metadata joined with what nodes logged about requests.

layout    a line of log4j text: when, how severe, who logged, what
lines     the records of a log file, piece by piece, with their byte positions
messages  what the authorizer and the controller say; `bodies` what the request log says
causes    what could have caused an event, and what to look for in the logs
judge     from the evidence to a name, or to none
join      all of it as data frames; `job` is the whole
"""

from __future__ import annotations

from quorate.spark.who.job import Answer, LogPaths, who
from quorate.spark.who.logs import Reading

__all__ = ["Answer", "LogPaths", "Reading", "who"]
