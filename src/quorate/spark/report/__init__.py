"""A warehouse and an audit as one self-contained HTML page."""

from quorate.spark.report.job import ReportError, report

__all__ = ["ReportError", "report"]
