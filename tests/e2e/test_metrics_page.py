"""The pages of `quorate.metrics.listener` of real processes, as scrapes and probes see them."""

import http.client
import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from interop.kafka import HOST, Quorum, free_port, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RAFT = "kafka_server_raft_metrics_"


@pytest.fixture
def quorum(tmp_path):
    with Quorum(tmp_path, dict.fromkeys((1, 2, 3), "quorate")) as quorum:
        for node in quorum.controllers:
            node.config["quorate.metrics.listener"] = f"{HOST}:{free_port()}"
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def ask(node, path):
    """Status and text of a page."""
    port = int(node.config["quorate.metrics.listener"].rpartition(":")[2])
    client = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def scrape(node):
    """Every sample: (name, label values) -> value."""
    status, text = ask(node, "/metrics")
    assert status == 200, text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def is_ready(node):
    return ask(node, "/readyz")[0] == 200


def test_the_pages_show_a_quorum_and_its_loss(quorum):
    quorum.write(20)
    leader = quorum.leader()
    follower, last = (node for node in quorum.controllers if node is not leader)
    for node in quorum.controllers:
        wait_for(lambda n=node: is_ready(n), f"{node} to be ready")
    quorum.wait_for_commit_by_all()
    ours, theirs = scrape(leader), scrape(follower)
    assert ours[RAFT + "current_state", "leader"] == 1
    assert theirs[RAFT + "current_state", "follower"] == 1
    assert ours[RAFT + "current_leader",] == theirs[RAFT + "current_leader",] == leader.id
    assert ours[RAFT + "append_records_total",] > 20 < theirs[RAFT + "fetch_records_total",]
    assert ours[RAFT + "number_of_voters",] == 3
    assert ours["quorate_commit_seconds_count",] > 20
    assert ours["quorate_disk_sync_seconds_count",] > 0
    assert ours["kafka_network_request_metrics_requests_total", "Fetch"] > 20
    assert ours["kafka_network_request_metrics_total_time_ms_sum", "Fetch"] > 0
    assert 0 <= ours[RAFT + "poll_idle_ratio_avg",] <= 1
    for node in (leader, last):
        node.kill()
    wait_for(lambda: not is_ready(follower), "the lone node to call itself unready", 10)
    verdict = json.loads(ask(follower, "/readyz")[1])
    assert verdict["ready"] is False and verdict["reason"] and verdict["node"] == follower.id
    assert ask(follower, "/healthz")[0] == 200
    leader.start()
    wait_for(lambda: is_ready(follower) and is_ready(leader), "a majority to be ready again")


def test_a_leader_that_loses_its_followers_is_no_longer_ready(quorum):
    leader = quorum.leader()
    wait_for(lambda: is_ready(leader), "the leader to be ready")
    for node in quorum.controllers:
        if node is not leader:
            node.freeze()
    wait_for(lambda: not is_ready(leader), "the leader to call itself unready", 10)
    assert ask(leader, "/healthz")[0] == 200


def test_unknown_keys_are_logged_once_and_known_keys_take_effect(tmp_path):
    unknown = {"controller.quorum.voter": "1@h:1", "num.io.threads": "3"}
    config = {**unknown, "min.insync.replicas": 2}
    with Quorum(tmp_path, {1: "quorate"}, config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.write(3)
        log = quorum.leader().log
        dump = quorum.nodes[1].dump_log(*quorum.nodes[1].partition.glob("*.log"))  # type: ignore[attr-defined]
    # A key with a meaning: the default that a new cluster's log begins with.
    assert '"name":"min.insync.replicas","value":"2"' in dump.stdout
    for key in unknown:
        assert log.count(key + " is ignored") + log.count(f"are ignored: {key}") == 1, log


def test_a_port_in_use_is_named_with_its_key(quorum, tmp_path):
    taken = quorum.leader().config["quorate.metrics.listener"]
    other = quorum.join(4, "quorate", {"quorate.metrics.listener": taken})
    assert other.wait_for_exit() == 1
    assert f"Cannot listen on {taken}" in other.log
    assert "another port in 'quorate.metrics.listener'" in other.log
    assert "Traceback" not in other.log
    del quorum.nodes[4]
