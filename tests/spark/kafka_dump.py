"""What the text of Kafka's own dump says of a log, as rows."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (\d+) .*isControl: (\w+) .*"
    r"position: (\d+) CreateTime: (\d+) size: (\d+) .*isvalid: (\w+)"
)
DATA = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*? payload: (.*)")
CONTROL = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .*?headerKeys: \[\] (\w+):? (.*)")


def dumped_by_kafka(text: str) -> list[dict[str, Any]]:
    """The rows of a dump's lines."""
    rows: list[dict[str, Any]] = []
    head: dict[str, Any] = {}
    for line in text.splitlines():
        if match := BATCH.match(line):
            base, last, epoch, control, position, time, size, valid = match.groups()
            head = {
                "base_offset": int(base),
                "last_offset": int(last),
                "epoch": int(epoch),
                "is_control": control == "true",
                "position": int(position),
                "batch_length": int(size),
                "crc_ok": valid == "true",
                "timestamp": datetime.fromtimestamp(int(time) / 1000, UTC),
            }
        elif match := DATA.match(line):
            payload = json.loads(match[3])
            data = match[3].partition('"data":')[2][:-1]
            name = "".join(word.title() for word in payload["type"].split("_"))
            rows.append(
                {
                    **head,
                    "offset": int(match[1]),
                    "type": name,
                    "version": payload["version"],
                    "record": data,
                }
            )
        elif match := CONTROL.match(line):
            data = match[4]
            rows.append(
                {
                    **head,
                    "offset": int(match[1]),
                    "type": match[3],
                    "version": json.loads(data)["version"],
                    "record": data,
                }
            )
    return rows
