"""Rates over windows, and the quotas on requests and connections (KIP-124, KIP-612)."""

from math import isnan

from immutables import Map
from pytest import approx

from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.connection_rates import (
    UNLIMITED,
    Admission,
    ConnectionRates,
    RateLimits,
    rate_limits,
)
from quorate.controller.rates import MAX_ENTRIES, Average, Rate, make_room
from quorate.controller.request_quotas import RequestQuotas
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import BROKER_RESOURCE
from quorate.metadata.settings import quota_entity

SECOND_NS = 1_000_000_000


def quotas(**rates):
    """A quota in percent for each user; `everybody` is the default user."""
    users = {None if name == "everybody" else name: rate for name, rate in rates.items()}
    return Map(
        {
            quota_entity({"user": user}): Map({"request_percentage": rate})
            for user, rate in users.items()
        }
    )


# -- rates -------------------------------------------------------------------------------------
def test_a_rate_is_taken_over_all_windows_from_the_first_value_on():
    rate = Rate(11, 1_000, 0)
    rate.record(100, 0)
    assert rate.per_second(0) == approx(10), "ten windows count as if they had been"
    assert rate.per_second(500) == approx(100 / 10.5)
    assert rate.per_second(10_999) == approx(100 / 10.999)
    assert rate.per_second(11_000) == 0, "the value is as old as the windows"
    assert rate.total == 100


def test_a_rate_keeps_what_overlaps_the_first_window():
    rate = Rate(2, 1_000, 0)
    for at_ms in (0, 900, 1_000, 2_000, 2_500):
        rate.record(1, at_ms)
    assert rate.per_second(2_500) == approx(5 / 2.5)
    assert rate.per_second(2_900) == approx(3 / 1.9), "the first sample is two windows old"
    rate.record(-3, 2_900)
    assert rate.per_second(2_900) == 0, "a negative value takes others back"


def test_the_throttle_time_brings_the_rate_to_its_bound():
    rate = Rate(11, 1_000, 0)
    rate.record(110, 0)
    assert rate.throttle_ms(11, 60_000, 0) == 0
    assert rate.throttle_ms(10, 60_000, 0) == 1_000, "110 in 11 s are 10 a second"
    assert rate.throttle_ms(1, 60_000, 0) == 60_000, "bounded"
    assert rate.throttle_ms(0, 1_000, 0) == 1_000, "nothing is allowed"


def test_an_average_forgets_what_is_a_minute_old():
    average = Average()
    for value, at_ms in ((10, 100_000), (20, 129_000), (60, 131_000)):
        average.record(value, at_ms)
    assert average.at(131_000) == approx(30)
    assert average.at(189_000) == approx(60)
    assert isnan(average.at(191_000))


def test_entries_that_nobody_uses_make_room_and_else_the_first_one():
    kept = {key: key for key in range(MAX_ENTRIES)}
    make_room(kept, lambda used: used, 5)
    assert sorted(kept)[0] == 5
    kept = dict.fromkeys(range(MAX_ENTRIES), 10)
    make_room(kept, lambda used: used, 5)
    assert len(kept) == MAX_ENTRIES - 1 and 0 not in kept


# -- requests ----------------------------------------------------------------------------------
def test_a_client_beyond_its_percentage_is_throttled_for_a_window_at_most():
    uses, limits = RequestQuotas(), quotas(alice=1.0)

    def work(ns, now_ms, user="alice"):
        return uses.throttle_ms(limits, user, "app", ns, now_ms)

    assert [work(SECOND_NS // 100, at) for at in range(0, 10_000, 1_000)] == [0] * 10
    # 100 ms in 10.5 s have been used: 20 ms more are 1.14 percent.
    assert work(SECOND_NS // 50, 9_500) == 1_000
    assert work(0, 9_500, user="bob") == 0, "bob has no quota"
    assert work(0, 30_000) == 0, "the windows have passed"
    uses.record(limits, "alice", "app", SECOND_NS, 30_000)
    assert work(0, 30_001) == 1_000, "the work after the response counts for the next request"
    (key, use), *others = uses.uses()
    assert (key, use.throttled_ms.at(30_001), others) == (("alice", ""), 1_000, [])
    assert use.rate.total == approx(112)


def test_a_changed_quota_counts_for_the_next_request():
    uses = RequestQuotas()
    for user in ("alice", "bob"):
        assert uses.throttle_ms(quotas(alice=50.0), user, "app", SECOND_NS, 0) == 0
    assert uses.throttle_ms(quotas(alice=1.0), "alice", "app", 0, 0) == 1_000
    assert uses.throttle_ms(quotas(), "alice", "app", SECOND_NS, 0) == 0
    assert uses.throttle_ms(quotas(everybody=1.0), "bob", "app", SECOND_NS, 0) == 1_000


# -- connections -------------------------------------------------------------------------------
def test_connections_beyond_the_rate_of_the_node_wait_one_behind_the_other():
    rates, limits = ConnectionRates(), RateLimits(node=1)
    delays = [rates.admit("A", "10.0.0.1", limits, 5_000_000) for _ in range(14)]
    assert delays[:10] == [Admission(0)] * 10
    late = [admission.delay_ms for admission in delays[10:]]
    assert late == sorted(late) and late[0] == 1_000 and late[-1] > 3_000
    assert not any(admission.is_refused for admission in delays)
    assert rates.listeners["A"].throttled_ms.at(5_000_000) == approx(late[-1] / 4)


def test_listeners_wait_apart():
    rates, limits = ConnectionRates(), RateLimits(listener=1)
    for _ in range(12):
        waited = rates.admit("A", "10.0.0.1", limits, 5_000_000)
    assert waited.delay_ms > 0
    assert rates.admit("B", "10.0.0.1", limits, 5_000_000) == Admission(0)


def test_an_address_beyond_its_rate_is_refused_and_does_not_count():
    rates, limits = ConnectionRates(), RateLimits(ip=1)
    for _ in range(10):
        assert rates.admit("A", "10.0.0.1", limits, 5_000_000) == Admission(0)
    assert rates.admit("A", "10.0.0.1", limits, 5_000_000) == Admission(1_000, True)
    assert rates.admit("A", "10.0.0.2", limits, 5_000_000) == Admission(0)
    assert rates.node.total == 11 and rates.listeners["A"].rate.total == 11
    assert {ip: rate.total for ip, rate in rates.ips.items()} == {"10.0.0.1": 10, "10.0.0.2": 1}
    assert rates.listeners["A"].ip_throttled_ms.at(5_000_000) == approx(1_000)


def test_the_limits_of_a_connection_follow_file_dynamic_configs_and_quotas():
    key = "max.connection.creation.rate"
    configs = ConfigsInForce(1, Map({key: "30", f"listener.name.slow.{key}": "3"}))
    image = Image()
    assert rate_limits(image, configs, "FAST", "10.0.0.1") == RateLimits(30, 30, UNLIMITED)
    assert rate_limits(image, configs, "SLOW", "10.0.0.1") == RateLimits(30, 3, UNLIMITED)
    dynamic: Map[ConfigResource, Map[str, str]]
    dynamic = Map([(ConfigResource(BROKER_RESOURCE, ""), Map({key: "20"}))])
    by_ip = Map(
        {
            quota_entity({"ip": "10.0.0.1"}): Map({"connection_creation_rate": 5.0}),
            quota_entity({"ip": None}): Map({"connection_creation_rate": 7.0}),
        }
    )
    image = Image(configs=dynamic, client_quotas=by_ip)
    assert rate_limits(image, configs, "FAST", "10.0.0.1") == RateLimits(20, 20, 5)
    assert rate_limits(image, configs, "FAST", "10.0.0.2") == RateLimits(20, 20, 7)
    assert rate_limits(Image(), ConfigsInForce(1), "FAST", "h") == RateLimits()
