"""The order of a node's system calls: nothing is acknowledged before it is durable.

Three real controllers under ptrace elect, replicate, answer, roll segments and hand over. Each
rule is then held against their system calls; and each is shown to notice the syncs it is about
when they are struck out of the same record.
"""

import subprocess
import sys

import pytest

from e2e.tracing import (
    FETCH,
    REGISTER,
    RENAMES,
    SYNCS,
    VOTE,
    WRITES,
    TracedNode,
    batches,
    compile_tracer,
    durable_end,
    messages,
    read_calls,
    saves,
)
from interop import kafka
from interop.kafka import Quorum

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="ptrace(2) as it is used here is Linux's"),
]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """The calls of three controllers, by node id, from their first start to a second leader."""
    folder = tmp_path_factory.mktemp("traced")
    with pytest.MonkeyPatch.context() as patch:
        TracedNode.tracer = compile_tracer(folder)
        patch.setattr(kafka, "KINDS", {"quorate": TracedNode})
        small = {"internal.metadata.log.segment.bytes": 2000}
        with Quorum(folder, dict.fromkeys((1, 2, 3), "quorate"), config=small) as quorum:
            quorum.format()
            quorum.start()
            quorum.write(20)
            quorum.wait_for_commit_by_all()
            first = quorum.leader()
            first.kill(15)
            quorum.write(20)
            for node in quorum.controllers:
                if node.is_alive:
                    node.kill(15)
            return {node.id: read_calls(node.calls_file) for node in quorum.controllers}  # type: ignore[attr-defined]


def without(traces, is_struck):
    return {
        node_id: [call for call in calls if not is_struck(call)]
        for node_id, calls in traces.items()
    }


# Each rule reports how often it applied, and what was wrong.


def votes_are_durable(traces):
    """A vote, for itself or another, is sent after quorum-state is durable."""
    seen, wrong = 0, []
    for node_id, calls in traces.items():
        kept = saves(calls)
        for message in messages(calls, {VOTE}):
            asked = message.asked.topics[0].partitions[0]
            if not message.sent or asked.pre_vote:
                continue
            if message.answer and not message.answer.topics[0].partitions[0].vote_granted:
                continue
            seen += 1
            vote = (asked.replica_epoch, asked.replica_id)
            durable = [
                (save.state["leaderEpoch"], save.state["votedId"])
                for save in kept
                if save.durable_at < message.begin
            ]
            if vote not in durable:
                wrong.append(f"node {node_id} let out a vote {vote}, durable are {durable}")
    return seen, wrong


def acknowledgements_are_durable(traces):
    """A Fetch from an offset acknowledges everything before it as durable."""
    seen, wrong = 0, []
    for node_id, calls in traces.items():
        log = batches(calls)
        for message in messages(calls, {FETCH}):
            if message.sent and not message.answer:
                offset = message.asked.topics[0].partitions[0].fetch_offset
                end = durable_end(log, message.begin)
                seen += offset > 0
                if offset > end:
                    wrong.append(f"node {node_id} acknowledged {offset}, has {end}")
    return seen, wrong


def answers_are_durable_on_a_majority(traces):
    """A client's record is acknowledged when two of the three disks have it."""
    seen, wrong = 0, []
    logs = {node_id: batches(calls) for node_id, calls in traces.items()}
    for node_id, calls in traces.items():
        for message in messages(calls, {REGISTER}):
            if not message.sent or not message.answer or message.answer.error_code != 0:
                continue
            seen += 1
            name = message.asked.incarnation_id.bytes
            (offset,) = {b.end_offset for b in logs[node_id] if name in b.data}
            have = [n for n, log in logs.items() if durable_end(log, message.begin) >= offset]
            if len(have) < 2:
                wrong.append(f"node {node_id} answered for offset {offset}, durable on {have}")
    return seen, wrong


def segments_have_durable_names(traces):
    """A segment is written to when its name is durable, and begun when the last one is whole."""
    seen, wrong = 0, []
    for node_id, calls in traces.items():
        log = batches(calls)
        for made in calls:
            if not (made.is_log and made.other == "create" and made.result >= 0):
                continue
            written = next((c for c in calls if c.file == made.file and c.name in WRITES), None)
            if written is None:
                continue
            seen += 1
            if not any(
                c.file.endswith("__cluster_metadata-0")
                and c.name in SYNCS
                and made.end < c.begin
                and c.end < written.begin
                for c in calls
            ):
                wrong.append(f"node {node_id} wrote to {made.file} before its name was durable")
            torn = [b for b in log if b.begin < made.begin and b.durable_at > made.begin]
            if torn:
                wrong.append(f"node {node_id} began {made.file} with {len(torn)} unsynced batches")
    return seen, wrong


OPEN_ACROSS_PAGES = """
import ctypes, mmap, sys
path, page = sys.argv[1].encode() + bytes(1), mmap.PAGESIZE
pages = mmap.mmap(-1, 2 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
for before in range(len(path) + 1):
    pages[page - before : page - before + len(path)] = path
    ctypes.CDLL(None).open(ctypes.c_void_p(start + page - before), 0)
"""


def test_the_tracer_reads_a_path_across_pages(tmp_path):
    """A rename that it left out once looked like a vote that was let out too early."""
    path = tmp_path / "__cluster_metadata-0" / "absent"
    program = [sys.executable, "-c", OPEN_ACROSS_PAGES, str(path)]
    record = tmp_path / "calls"
    subprocess.run([compile_tracer(tmp_path), record, *program], check=True, timeout=60)
    found = [call for call in read_calls(record) if call.file == str(path)]
    assert len(found) == len(str(path)) + 2


LEAST = {
    votes_are_durable: 4,  # two elections of a candidate and one who votes for it
    acknowledgements_are_durable: 40,
    answers_are_durable_on_a_majority: 40,
    segments_have_durable_names: 6,
}


@pytest.mark.xdist_group("traced")
@pytest.mark.parametrize("rule", LEAST, ids=lambda rule: rule.__name__)
def test_nothing_is_acknowledged_before_it_is_durable(traces, rule):
    seen, wrong = rule(traces)
    assert wrong == []
    assert seen >= LEAST[rule]


def of_log(call):
    return call.is_log and call.name in SYNCS


def of_vote(call):
    return call.file.endswith("quorum-state.tmp") and call.name in SYNCS


def of_directory(call):
    return call.file.endswith("__cluster_metadata-0") and call.name in SYNCS


def of_name(call):
    return call.file.endswith("quorum-state.tmp") and call.name in RENAMES


@pytest.mark.xdist_group("traced")
@pytest.mark.parametrize(
    ("rule", "struck"),
    [
        (votes_are_durable, of_vote),
        (votes_are_durable, of_name),
        (votes_are_durable, of_directory),
        (acknowledgements_are_durable, of_log),
        (answers_are_durable_on_a_majority, of_log),
        (segments_have_durable_names, of_log),
        (segments_have_durable_names, of_directory),
    ],
    ids=lambda each: each.__name__,
)
def test_each_rule_detects_its_missing_sync(traces, rule, struck):
    seen, wrong = rule(without(traces, struck))
    assert seen > 0
    assert len(wrong) >= seen / 2


@pytest.mark.xdist_group("traced")
def test_a_late_sync_is_detected(traces):
    """Each sync of the log returns 20 ms after it did: acknowledgements and answers overtake it."""
    late = {
        node_id: [
            call._replace(begin=call.begin + 20_000_000, end=call.end + 20_000_000)
            if of_log(call)
            else call
            for call in calls
        ]
        for node_id, calls in traces.items()
    }
    for rule in (acknowledgements_are_durable, answers_are_durable_on_a_majority):
        assert rule(late)[1] != []
