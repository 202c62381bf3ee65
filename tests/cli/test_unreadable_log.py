"""Controllers whose metadata log cannot be read: tools say why, and do not wait for it."""

import time

import pytest

from client.fake_node import FakeNode
from client.test_admin import cluster
from client.test_admin_calls import open_admin
from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC_ID
from quorate.cli.tools.cluster_image import ImageUnreadableError, read_image
from quorate.wire.messages import FetchResponse

FETCH = 1
TOPIC = FetchResponse.FetchableTopicResponse
AT_ONCE_S = 5
"""The tools would wait three times as long for a leader."""


def of_partition(code):
    partition = TOPIC.PartitionData(error_code=code)
    return FetchResponse(responses=[TOPIC(topic_id=METADATA_TOPIC_ID, partitions=[partition])])


@pytest.mark.parametrize(
    ("answer", "serves", "reason"),
    [
        (FetchResponse(), None, "does not support Fetch"),
        (FetchResponse(), (4, 11), "does not support Fetch in version 12 or later"),
        (FetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), (4, 17), "UNSUPPORTED_VERSION"),
        (of_partition(ErrorCode.UNSUPPORTED_VERSION), (4, 17), "UNSUPPORTED_VERSION"),
        (
            FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (4, 17),
            "needs ClusterAction on Cluster",
        ),
        (
            of_partition(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            (4, 17),
            "TOPIC_AUTHORIZATION_FAILED",
        ),
    ],
)
def test_a_log_that_is_not_served_fails_at_once(answer, serves, reason):
    with FakeNode({"FetchRequest": [answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        del node.versions[FETCH]
        node.versions |= {} if serves is None else {FETCH: serves}
        began = time.monotonic()
        with pytest.raises(ImageUnreadableError, match=reason) as caught:
            read_image(admin)
        assert time.monotonic() - began < AT_ONCE_S
    assert caught.value.is_refused == ("AUTHORIZATION" in reason or "ClusterAction" in reason)
