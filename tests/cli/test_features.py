"""`quorate features describe` of a node of another release."""

import re

import pytest

from client.fake_node import FakeNode
from quorate.wire.messages import ApiVersionsResponse, DescribeClusterResponse
from quorate.wire.registry import CONTROLLER_API_VERSIONS


def answer(highest, level):
    cls = ApiVersionsResponse
    return cls(
        api_keys=[
            cls.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in CONTROLLER_API_VERSIONS.items()
        ],
        supported_features=[
            cls.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=highest)
        ],
        finalized_features=[
            cls.FinalizedFeatureKey(
                name="metadata.version", max_version_level=level, min_version_level=level
            )
        ],
        finalized_features_epoch=9,
    )


@pytest.mark.parametrize(
    ("highest", "level", "shown"),
    [
        (30, 30, ("4.3-IV0", "4.3-IV0")),
        (33, 32, ("4.4-IV2", "4.4-IV1")),
        (36, 35, ("UNKNOWN 36", "UNKNOWN 35")),
    ],
)
def test_a_level_is_shown_by_its_name_where_it_has_one(quorate, highest, level, shown):
    with FakeNode({"ApiVersionsRequest": [answer(highest, level)]}) as node:
        here = DescribeClusterResponse.DescribeClusterBroker(
            broker_id=1, host=node.address.host, port=node.address.port
        )
        node.answers["DescribeClusterRequest"] = [
            DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=[here])
        ]
        where = ("--bootstrap-controller", node.address)
        code, out, err = quorate("features", *where, "describe")
    assert (code, err) == (0, "")
    words = re.split(" {2,}", out)
    assert f"SupportedMaxVersion: {shown[0]}" in words
    assert f"FinalizedVersionLevel: {shown[1]}" in words
