"""Measure the codec: Fetch v17 and a Metadata v13 response of 1000 topics, beside Java's.

    python -m bench.codec [--java] [--json] [--seconds 1.0]

Prints messages per second of CPU time: of the codec in Python, of the one in C where it is built,
and with --java of kafka-clients on the same messages in the same run (its thread alone: neither
garbage collector nor compiler counts against it).
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from timeit import Timer
from typing import Any

from quorate.base.ids import METADATA_TOPIC_ID, Uuid
from quorate.wire import codec, generated
from quorate.wire.messages import FetchRequest, FetchResponse, MetadataResponse
from quorate.wire.schema import Message

HOME = Path(__file__).parents[1]
FETCH_VERSION, METADATA_VERSION = 17, 13
TOPICS, PARTITIONS = 1000, 3
Rates = dict[str, float]


def fetch_request() -> FetchRequest:
    """What a voter sends all day."""
    topic = FetchRequest.FetchTopic
    return FetchRequest(
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        replica_state=FetchRequest.ReplicaState(replica_id=2),
        max_wait_ms=500,
        max_bytes=1_048_576,
        topics=[
            topic(
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    topic.FetchPartition(
                        current_leader_epoch=7,
                        fetch_offset=123_456,
                        last_fetched_epoch=7,
                        replica_directory_id=Uuid(bytes(range(16))),
                    )
                ],
            )
        ],
    )


def fetch_response() -> FetchResponse:
    """What the leader answers: 1 KiB of records."""
    topic = FetchResponse.FetchableTopicResponse
    leader = topic.PartitionData.LeaderIdAndEpoch(leader_id=1, leader_epoch=7)
    return FetchResponse(
        responses=[
            topic(
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    topic.PartitionData(
                        high_watermark=123_456,
                        log_start_offset=0,
                        current_leader=leader,
                        records=bytes(1024),
                    )
                ],
            )
        ],
        node_endpoints=[FetchResponse.NodeEndpoint(node_id=1, host="localhost", port=9093)],
    )


def metadata_response() -> MetadataResponse:
    """A cluster of three brokers with 1000 topics of three partitions."""
    topic = MetadataResponse.MetadataResponseTopic
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=i, host=f"broker-{i}", port=9092)
            for i in range(3)
        ],
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        controller_id=1,
        topics=[
            topic(
                name=f"topic-{number:04}",
                topic_id=Uuid(number.to_bytes(16, "big")),
                partitions=[
                    topic.MetadataResponsePartition(
                        partition_index=index,
                        leader_id=index,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for index in range(PARTITIONS)
                ],
            )
            for number in range(TOPICS)
        ],
    )


def cases() -> dict[str, tuple[Message, int]]:
    return {
        "FetchRequest v17": (fetch_request(), FETCH_VERSION),
        "FetchResponse v17": (fetch_response(), FETCH_VERSION),
        "MetadataResponse v13, 1000 topics": (metadata_response(), METADATA_VERSION),
    }


def rate(call: str, names: dict[str, Any], seconds: float) -> float:
    """Calls per second of CPU time: the best of five rounds that together take `seconds`."""
    timer = Timer(call, "gc.enable()", thread_time, {**names, "gc": gc})
    count = 1
    while (spent := timer.timeit(count)) < seconds / 10:
        count *= 2
    count = max(1, round(count * seconds / 5 / spent))
    return count / min(timer.repeat(5, count))


def ours(encode: Callable[..., Any], decode: Callable[..., Any], seconds: float) -> Rates:
    rates = {}
    for name, (message, version) in cases().items():
        names = {"encode": encode, "decode": decode, "message": message, "version": version}
        names |= {"cls": type(message), "wire": encode(message, version)}
        rates[f"{name} encode"] = rate("encode(message, version)", names, seconds)
        rates[f"{name} decode"] = rate("decode(cls, version, wire)", names, seconds)
    return rates


def in_python(seconds: float) -> Rates:
    def decode(cls: type[Message], version: int, wire: bytes) -> Message:
        return generated.decode_prefix(cls, version, wire, 0)[0]

    return ours(generated.encode, decode, seconds)


def in_c(seconds: float) -> Rates:
    return ours(codec.encode, codec.decode, seconds)


def in_java(seconds: float) -> Rates:
    """kafka-clients on the same bytes; each message goes to it as hex on one line."""
    lines = [
        f"{name}\t{type(message).__name__}Data\t{version}\t{codec.encode(message, version).hex()}"
        for name, (message, version) in cases().items()
    ]
    command = ["java", "-cp", str(HOME / ".kafka" / "libs" / "*")]
    command += [str(HOME / "bench" / "java" / "CodecBench.java"), str(seconds)]
    done = subprocess.run(
        command, input="\n".join(lines), text=True, stdout=subprocess.PIPE, check=True
    )
    found: Rates = json.loads(done.stdout)
    return found


def measure(seconds: float, java: bool) -> dict[str, Rates]:
    """Messages per second of CPU time, by codec and case."""
    found = {"Python": in_python(seconds)}
    if codec.NATIVE:
        found["C"] = in_c(seconds)
    if java:
        found["Java"] = in_java(seconds)
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench.codec", description="Measure the codec.")
    parser.add_argument("--java", action="store_true", help="compare with kafka-clients")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measure")
    options = parser.parse_args(arguments)
    found = measure(options.seconds, options.java)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'messages per second of CPU':45}" + "".join(f"{name:>12}" for name in found))
    for case in found["Python"]:
        print(f"{case:45}" + "".join(f"{rates[case]:12,.0f}" for rates in found.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
