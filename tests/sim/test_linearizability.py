"""The linearizability checker, against all permutations and against histories with known results."""

from __future__ import annotations

from itertools import permutations
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.sim.checks.linearizability import _Search, check
from quorate.sim.world.client_op import ClientOp, OpKind, OpOutcome


def op(
    kind: OpKind,
    at: tuple[int, int],
    value: int | None = None,
    *,
    expected: int | None = None,
    result: int | bool | None = None,
    outcome: OpOutcome = "ok",
    key: int = 0,
) -> ClientOp:
    return ClientOp(0, 0, kind, key, value, expected, at[0], at[1], outcome, result)


def put(at: tuple[int, int], value: int, outcome: OpOutcome = "ok") -> ClientOp:
    return op("put", at, value, outcome=outcome)


def get(at: tuple[int, int], result: int | None) -> ClientOp:
    return op("get", at, result=result)


def cas(
    at: tuple[int, int],
    expected: int | None,
    value: int,
    result: bool | None,
    outcome: OpOutcome = "ok",
) -> ClientOp:
    return op("cas", at, value, expected=expected, result=result, outcome=outcome)


def test_a_read_sees_the_last_write() -> None:
    assert check([put((0, 1), 7), get((2, 3), 7)]) is None


def test_a_stale_read_is_found_and_reported() -> None:
    anomaly = check([put((0, 1), 7), put((2, 3), 8), get((4, 5), 7)])
    assert anomaly is not None
    assert "get -> 7" in str(anomaly)
    assert "the value is 8" in str(anomaly)


def test_a_lost_write_is_found() -> None:
    assert check([put((0, 1), 7), get((2, 3), None)]) is not None


def test_concurrent_operations_may_be_in_any_order() -> None:
    assert check([put((0, 5), 7), get((1, 2), None), get((3, 4), 7)]) is None
    assert check([put((0, 5), 7), get((1, 2), 7), get((3, 4), None)]) is not None


def test_an_unknown_write_may_be_late_or_never() -> None:
    late = put((0, -1), 7, "unknown")
    assert check([late, get((2, 3), None), get((4, 5), 7)]) is None
    assert check([late, get((2, 3), None)]) is None
    assert check([late, get((2, 3), 7), put((4, 5), 8), get((6, 7), 7)]) is not None


def test_an_unknown_write_is_not_before_its_call() -> None:
    assert check([get((0, 1), 7), put((2, -1), 7, "unknown")]) is not None


def test_a_refused_write_never_happened() -> None:
    assert check([put((0, 1), 7, "refused"), get((2, 3), 7)]) is not None


def test_a_cas_that_failed_saw_another_value() -> None:
    assert check([put((0, 1), 7), cas((2, 3), 7, 8, False)]) is not None
    unknown = put((0, -1), 9, "unknown")
    assert check([unknown, put((0, 1), 7), cas((2, 3), 7, 8, False)]) is None


def test_chains_of_unknown_cas() -> None:
    chain = [cas((0, -1), None, 1, None, "unknown"), cas((0, -1), 1, 2, None, "unknown")]
    assert check([*chain, get((2, 3), 2)]) is None
    assert check([chain[1], get((2, 3), 2)]) is not None


def test_keys_are_independent() -> None:
    other = op("get", (2, 3), key=1)
    assert check([put((0, 1), 7), other]) is None


VALUES = st.integers(1, 3)


@st.composite
def operations(draw: st.DrawFn) -> ClientOp:
    kind = draw(st.sampled_from(["put", "get", "cas"]))
    begin = draw(st.integers(0, 12))
    end = begin + draw(st.integers(1, 6))
    outcome: OpOutcome = draw(st.sampled_from(["ok", "ok", "ok", "unknown", "refused"]))
    if kind == "get":
        return op("get", (begin, end), result=draw(st.none() | VALUES), outcome=outcome)
    if kind == "put":
        return put((begin, end), draw(VALUES), outcome)
    return cas((begin, end), draw(st.none() | VALUES), draw(VALUES), draw(st.booleans()), outcome)


def is_an_order(order: tuple[ClientOp, ...]) -> bool:
    """Does this order keep real time, and does each certain operation answer as it did?"""
    value: int | None = None
    for index, this in enumerate(order):
        for later in order[index + 1 :]:
            if later.outcome == "ok" and later.answered_us < this.invoked_us:
                return False
        matched = value == this.expected
        if this.outcome == "ok":
            if this.kind == "get" and this.result != value:
                return False
            if this.kind == "cas" and this.result != matched:
                return False
        if this.kind == "put" or (this.kind == "cas" and matched):
            value = this.value
    return True


def brute_force(history: list[ClientOp]) -> bool:
    """All subsets of the uncertain operations, in all orders with the certain ones."""
    certain = [o for o in history if o.outcome == "ok"]
    unknown = [o for o in history if o.outcome == "unknown"]
    for bits in range(1 << len(unknown)):
        chosen = certain + [o for i, o in enumerate(unknown) if bits >> i & 1]
        if any(is_an_order(order) for order in permutations(chosen)):
            return True
    return False


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(operations(), max_size=6))
def test_it_agrees_with_all_permutations(history: list[ClientOp]) -> None:
    assert (check(history) is None) == brute_force(history)


def a_run(seed: int, clients: int, length: int) -> list[ClientOp]:
    """A history of a correct register: each operation takes effect at a moment inside its call."""
    random = Random(seed)
    value: int | None = None
    pending: list[tuple[int, int, ClientOp]] = []
    busy = [0] * clients
    for number in range(length):
        fresh = number + 1
        client = min(range(clients), key=lambda c: busy[c])
        begin = busy[client] + random.randrange(1, 5)
        moment = begin + random.randrange(1, 20)
        end = moment + random.randrange(1, 20)
        kind: OpKind = random.choice(["put", "get", "cas"])
        expected = random.choice([None, fresh - 1, fresh - 2]) if kind == "cas" else None
        this = ClientOp(client, number, kind, 0, fresh, expected, begin, end, "ok")
        busy[client] = end
        pending.append((moment, number, this))
    for _, _, this in sorted(pending, key=lambda item: item[:2]):
        if this.kind == "get":
            this.result = value
        elif this.kind == "cas":
            this.result = value == this.expected
        if this.kind == "put" or (this.result is True and this.kind == "cas"):
            value = this.value
        if random.random() < 0.2:
            this.outcome = "unknown"
    return [this for _, _, this in pending]


@pytest.mark.parametrize("seed", range(5))
def test_hundreds_of_operations_are_quick(seed: int) -> None:
    history = a_run(seed, 10, 600)
    began = process_time()
    assert check(history) is None
    assert process_time() - began < 2


@pytest.mark.parametrize("seed", range(5))
def test_one_wrong_answer_among_hundreds_is_found(seed: int) -> None:
    history = a_run(seed, 5, 300)
    reads = [o for o in history if o.kind == "get" and o.outcome == "ok" and o.answered_us > 1000]
    written = [o for o in history if o.kind == "put" and o.answered_us < reads[0].invoked_us - 200]
    reads[0].result = written[0].value
    began = process_time()
    assert check(history) is not None
    assert process_time() - began < 5


def a_wrong_end(history: list[ClientOp], at: int) -> list[ClientOp]:
    """A final read returns a value that was never written: no order is valid, and all are tried."""
    return [*history, get((at, at + 1), -5)]


def refused_puts(count: int) -> list[ClientOp]:
    """Puts with an unknown outcome, and cas that found another value than the present one."""
    found = [put((0, -1), 100 + i, "unknown") for i in range(count)]
    for at in range(10, 10 + 4 * count, 4):
        found += [put((at, at + 1), 1), cas((at + 2, at + 3), 1, 1000 + at, False)]
    return a_wrong_end(found, 10 + 4 * count)


def the_same_again(count: int) -> list[ClientOp]:
    """One value is written repeatedly, an unknown number of times."""
    found = [put((0, -1), 7, "unknown") for _ in range(2 * count)]
    for at in range(10, 10 + 4 * count, 4):
        found += [put((at, at + 1), 1), get((at + 2, at + 3), 7)]
    return a_wrong_end(found, 10 + 4 * count)


def all_at_once(count: int) -> list[ClientOp]:
    return a_wrong_end([put((i, 100 + i), 10 + i) for i in range(count)], 200)


def timed_out(count: int) -> list[ClientOp]:
    """A register whose every second client gets no answer; the last read is stale."""
    history, random = a_run(1, 5, count), Random(1)
    for this in history:
        if this.kind != "get" and random.random() < 0.5:
            this.outcome = "unknown"
    end = max(this.answered_us for this in history)
    stale = next(o.value for o in history if o.kind == "put" and o.outcome == "ok")
    return [*history, get((end + 1, end + 2), stale)]


@pytest.mark.parametrize("make", [refused_puts, the_same_again, all_at_once, timed_out])
def test_a_wrong_history_of_many_operations_is_refused_after_few_states(make) -> None:
    history = make(60) if make is not timed_out else make(300)
    search = _Search(0, history)
    assert search.run() is not None
    assert len(search.seen) < 60 * len(history)
