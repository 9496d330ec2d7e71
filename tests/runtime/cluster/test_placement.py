"""Sessions go where there is room, stay there, and go down only with their own host."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from property_budget import examples

from runtime.cluster.placement import Health, HostLoad, HostPlacement, choose
from runtime.errors import InfrastructureError
from runtime.sandbox import Tier

TIERS = st.sampled_from(list(Tier))
CAPACITY = st.fixed_dictionaries({tier: st.integers(0, 5) for tier in Tier})


def places(shared: int = 4, process: int = 4, sandbox: int = 2) -> dict[Tier, int]:
    return {Tier.SHARED: shared, Tier.PROCESS: process, Tier.SANDBOX: sandbox}


def test_the_host_with_the_most_room_goes_first_and_names_break_ties() -> None:
    placement = HostPlacement()
    for name in ("b", "a", "c"):
        placement.join(name, places())
    assert [placement.open(number, Tier.SHARED) for number in range(6)] == ["a", "b", "c", "a", "b", "c"]


def test_hosts_fill_in_proportion_to_their_size() -> None:
    placement = HostPlacement()
    placement.join("large", places(shared=30))
    placement.join("small", places(shared=10))
    for number in range(20):
        placement.open(number, Tier.SHARED)
    assert {name: host.load[Tier.SHARED] for name, host in placement.hosts.items()} == {"large": 15, "small": 5}


def test_a_host_whose_sandboxes_are_taken_gets_the_next_shared_session_last() -> None:
    placement = HostPlacement()
    placement.join("a", places())
    placement.join("b", places())
    placement.settle(1, "a", Tier.SANDBOX)
    assert placement.open(2, Tier.SHARED) == "b"


def test_a_session_that_moves_down_frees_one_place_and_takes_another() -> None:
    placement = HostPlacement()
    placement.join("a", places())
    placement.open(1, Tier.SHARED)
    placement.moved(1, Tier.SANDBOX)
    assert (placement.home(1), placement.hosts["a"].load) == ("a", {Tier.SHARED: 0, Tier.SANDBOX: 1})


def test_full_hosts_still_take_sessions_and_none_at_all_takes_none() -> None:
    placement = HostPlacement()
    with pytest.raises(InfrastructureError, match="no host"):
        placement.open(0, Tier.SHARED)
    placement.join("a", places(shared=1, sandbox=0))
    assert [placement.open(number, Tier.SHARED) for number in range(3)] == ["a", "a", "a"]
    with pytest.raises(InfrastructureError, match="sandbox tier"):
        placement.open(9, Tier.SANDBOX)


def test_a_host_that_was_lost_comes_back_empty() -> None:
    placement = HostPlacement()
    placement.join("a", places())
    placement.open(1, Tier.SHARED)
    assert (placement.lose("a"), placement.home(1)) == ([1], None)
    placement.join("a", places())
    assert placement.open(2, Tier.SHARED) == "a"
    placement.close(1)
    assert placement.hosts["a"].load[Tier.SHARED] == 1
    with pytest.raises(ValueError, match="already joined"):
        placement.join("a", places())


@given(st.lists(st.tuples(CAPACITY, st.sampled_from(list(Health)), st.integers(0, 9)), max_size=6), TIERS)
def test_only_a_ready_host_with_places_is_chosen_and_none_is_emptier(
    given_hosts: list[tuple[dict[Tier, int], Health, int]], tier: Tier
) -> None:
    hosts = [HostLoad(f"host-{number}", capacity, health) for number, (capacity, health, _) in enumerate(given_hosts)]
    for host, (_, _, load) in zip(hosts, given_hosts, strict=True):
        host.load[tier] = load
    fit = [host for host in hosts if host.health is Health.READY and host.capacity[tier]]
    chosen = choose(hosts, tier)
    assert (chosen in fit) if fit else (chosen is None)
    assert chosen is None or all(chosen.filled(tier, 1) <= host.filled(tier, 1) for host in fit)
    assert chosen is choose(reversed(hosts), tier)


class Life(RuleBasedStateMachine):
    """Hosts come and go, sessions open, move and close, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.placement = HostPlacement()
        self.alive: dict[int, tuple[str, Tier]] = {}
        self.number = 0

    @rule(name=st.sampled_from("abc"), capacity=CAPACITY)
    def join(self, name: str, capacity: dict[Tier, int]) -> None:
        known = self.placement.hosts.get(name)
        if known is None or known.health is Health.LOST:
            self.placement.join(name, capacity)

    @precondition(lambda self: self.placement.hosts)
    @rule(data=st.data(), draining=st.booleans())
    def drain(self, data: st.DataObject, draining: bool) -> None:
        self.placement.drain(data.draw(st.sampled_from(sorted(self.placement.hosts))), draining)

    @precondition(lambda self: self.placement.hosts)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.placement.hosts)))
        expected = sorted(session for session, (home, _) in self.alive.items() if home == name)
        assert sorted(self.placement.lose(name)) == expected
        for session in expected:
            del self.alive[session]

    @rule(tier=TIERS)
    def open(self, tier: Tier) -> None:
        self.number += 1
        try:
            self.alive[self.number] = self.placement.open(self.number, tier), tier
        except InfrastructureError:
            assert choose(self.placement.hosts.values(), tier) is None

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), tier=TIERS)
    def move(self, data: st.DataObject, tier: Tier) -> None:
        session = data.draw(st.sampled_from(sorted(self.alive)))
        if self.placement.hosts[self.alive[session][0]].capacity[tier]:
            self.placement.moved(session, tier)
            self.alive[session] = self.alive[session][0], tier

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(sorted(self.alive)))
        self.placement.close(session)
        del self.alive[session]

    @invariant()
    def every_session_is_where_it_was_put_and_counted_once(self) -> None:
        assert {session: self.placement.home(session) for session in self.alive} == {
            session: home for session, (home, _) in self.alive.items()
        }
        for name, host in self.placement.hosts.items():
            for tier in Tier:
                assert host.load[tier] == sum(place == (name, tier) for place in self.alive.values())


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(50), deadline=None)
