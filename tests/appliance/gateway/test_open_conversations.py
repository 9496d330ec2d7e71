"""A conversation that goes on is its session, and one that goes on in another way is another one, however many do."""

from __future__ import annotations

from appliance.gateway.conversation import MOST_LIVE, OpenConversation, OpenConversations, new_id


def begun(name: str = "") -> OpenConversation:
    return OpenConversation(name or new_id(), "v", (), (), (), calls=False, created="", recorded=True)


def test_the_first_way_alone_is_the_session_itself() -> None:
    open_ones = OpenConversations()
    open_ones.put("a", begun("first"))
    for number in range(8 * MOST_LIVE):
        found = open_ones.find("a")
        assert found is not None
        assert (found.id == "first") is (number == 0)
        key = f"other-{number}"
        open_ones.put(key, begun())
        open_ones.find(key)


def test_what_is_forgotten_and_comes_again_is_its_session_again() -> None:
    open_ones = OpenConversations()
    open_ones.put("a", begun("first"))
    open_ones.find("a")
    for number in range(MOST_LIVE):
        open_ones.put(f"other-{number}", begun())
    assert open_ones.find("a") is None
    open_ones.put("a", begun("again"))
    found = open_ones.find("a")
    assert found is not None
    assert found.id == "again"
