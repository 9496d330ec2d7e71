"""Which attack of the catalogue is tried where, against each backend, and which are not, and why.

The catalogue numbers known attacks on sandboxes and on those who judge code: 1 to 27 forge reports and hack tests, 44
to 52 exhaust what a machine has, 53 to 65 escape or leak. Those between, and those left out of the first group, concern
the judges of mathematics and of tests, and are tried with these.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import pytest
from attack_kit import OK, AttackBench, attack
from test_attack_bombs import ATTACKS

from runtime.conformance import host


class Row(NamedTuple):
    what: str
    tried: tuple[str, ...] = ()
    """`module: function`, or `module: function` of several."""
    why_not: str = ""


ROWS = {
    1: Row("exit before the end", ("replies: test_leaving_early_is_never_a_success_with_words_of_its_own",)),
    2: Row("exit by an exception", ("replies: test_leaving_early_is_never_a_success_with_words_of_its_own",)),
    4: Row("ways round a filter of exits", ("replies: test_leaving_early_is_never_a_success_with_words_of_its_own",)),
    5: Row("handlers at the end", ("replies: test_leaving_early_is_never_a_success_with_words_of_its_own",)),
    12: Row("a forged result", (
        "replies: test_a_forged_reply_is_a_death_or_no_reply_at_all",
        "replies: test_what_only_the_supervisor_may_say_is_believed_from_nobody_else",
        "replies: test_a_report_that_nobody_should_parse_hurts_nobody",
        "replies: test_code_that_looks_everywhere_cannot_answer_for_itself",
        "replies: test_sessions_that_share_a_sandbox_cannot_answer_for_each_other",
    )),
    14: Row("poisoned programs", (
        "surroundings: test_poisoned_modules_programs_and_variables_reach_nothing_that_the_host_asks_for",
        "surroundings: test_nothing_of_the_root_can_be_replaced",
    )),
    15: Row("poisoned imports", (
        "surroundings: test_poisoned_modules_programs_and_variables_reach_nothing_that_the_host_asks_for",
    )),
    16: Row("what waits for the judge", (
        "deadlines: test_what_waits_for_the_end_of_a_call_cannot_change_what_was_said",
        "deadlines: test_orphans_of_a_call_that_ended_die_with_the_sandbox",
    )),
    17: Row("signals and tracing", (
        "deadlines: test_signals_reach_nobody_who_could_answer_for_them",
        "deadlines: test_nobody_can_be_traced",
    )),
    21: Row("telling who looks", (
        "surroundings: test_every_sandbox_looks_the_same_from_inside",
        "surroundings: test_the_order_of_a_set_is_the_same_in_every_tier",
    )),
    22: Row("answers in a history", ("surroundings: test_there_is_no_history_and_no_cache_to_read",)),
    23: Row("answers in /proc, files, caches", ("surroundings: test_a_word_of_the_host_is_found_nowhere_inside",)),
    44: Row("bombs of processes and threads", ("bombs: test_a_bomb_is_held_and_named",)),
    45: Row("memory in every form", ("bombs: test_a_bomb_is_held_and_named",)),
    46: Row("disk, sparse files, many files", (
        "bombs: test_a_bomb_is_held_and_named",
        "bombs: test_the_size_of_a_folder_is_what_was_given",
    )),
    47: Row("floods of output", (
        "floods: test_a_flood_is_cut_where_the_cap_is",
        "floods: test_a_program_that_floods_is_ended_and_the_sandbox_lives_on",
    )),
    48: Row("descriptors and sockets", ("bombs: test_a_bomb_is_held_and_named",)),
    49: Row("what will not end", (
        "deadlines: test_what_does_not_end_is_ended",
        "deadlines: test_a_program_that_leaves_its_group_cannot_keep_the_sandbox_waiting",
    )),
    50: Row("archives and structures that unpack into more", (
        "floods: test_a_bomb_of_an_archive_comes_back_as_the_bytes_it_is",
        "replies: test_a_report_that_nobody_should_parse_hurts_nobody",
    )),
    51: Row("sources that choke a compiler", (
        "floods: test_a_flood_is_cut_where_the_cap_is",
        "floods: test_a_source_that_cannot_be_parsed_costs_only_its_own_call",
    )),
    52: Row("snapshots asked for by a guest, or without end", (
        "snapshots: test_a_guest_cannot_ask_for_one",
        "snapshots: test_asking_for_them_in_a_loop_comes_to_an_end",
        "snapshots: test_a_snapshot_in_the_middle_of_anything_is_taken_or_refused_in_time",
        "snapshots: test_what_was_tampered_with_on_disk_is_never_used",
    )),
    53: Row("links where the host reads or writes", (
        "files: test_a_trap_in_the_place_of_a_file_is_refused",
        "files: test_a_link_in_the_middle_of_a_path_is_followed_by_nothing",
        "files: test_a_tree_that_changes_while_it_is_read_gives_its_own_or_nothing",
    )),
    54: Row("odd kinds and names of files", (
        "files: test_an_odd_name_is_copied_as_it_is_or_refused",
        "files: test_a_path_that_is_no_plain_one_is_asked_of_nobody",
        "files: test_what_is_too_much_is_refused_before_it_fills_the_host",
        "files: test_a_downloaded_tree_has_nothing_but_plain_files_of_plain_rights",
    )),
    55: Row("requests to services of the host", (
        "network: test_no_address_of_another_network_is_reached",
        "network: test_no_unix_socket_of_the_host_is_reached",
    )),
    56: Row("ways out through any socket", (
        "network: test_no_packet_gets_out",
        "network: test_no_odd_family_leads_out",
        "network: test_two_sandboxes_cannot_meet",
    )),
    57: Row("leaks of /proc, /sys, environment, devices, keys", (
        "kernel: test_no_interface_of_a_kernel_can_be_opened",
        "kernel: test_devices_are_those_that_hold_nothing",
        "surroundings: test_a_word_of_the_host_is_found_nowhere_inside",
    )),
    58: Row("helpers with rights", (
        "kernel: test_no_right_can_be_gained",
        "kernel: test_no_file_of_the_root_lends_rights",
        "kernel: test_no_world_of_its_own_leads_to_the_pipes_of_its_supervisor",
    )),
    59: Row("a flaw of gVisor or of the kernel", ("kernel: test_no_right_can_be_gained",),
            why_not="A flaw that nobody knows cannot be tried; the calls that known ones needed are."),
    60: Row("leaks between rollouts", (
        "surroundings: test_nothing_of_one_session_is_found_in_the_next",
        "lineage: test_copies_share_nothing_that_came_after",
    )),
    61: Row("copies that draw the same numbers", (
        "lineage: test_copies_of_one_snapshot_draw_other_numbers_and_know_what_time_it_is",
    )),
    62: Row("side channels", why_not="No backend promises anything against them; the documents say so."),
    63: Row("tricks with clocks", (
        "lineage: test_time_is_what_the_host_measured",
        "lineage: test_a_guest_that_stops_its_clock_is_late_all_the_same",
        "lineage: test_processor_time_is_counted_by_the_host_and_ends",
    )),
    64: Row("results left in buffers of a GPU", why_not="No sandbox has a GPU."),
    65: Row("lower precision on a GPU", why_not="No sandbox has a GPU; tolerances are the judges' business."),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_tried_or_says_why_not(row: int) -> None:
    found = ROWS[row]
    assert found.tried or found.why_not
    for place in found.tried:
        module, function = place.split(": ")
        assert callable(getattr(importlib.import_module(f"test_attack_{module}"), function))


def test_every_row_of_exhaustion_and_escape_is_there() -> None:
    assert set(range(44, 66)) <= set(ROWS)


def test_the_broker_keeps_nothing_of_what_it_ended(bench: AttackBench) -> None:
    """Whatever ended them: asked, killed, out of memory."""
    quick = [tried for tried in ATTACKS if tried.name in ("memory of one", "a full disk", "descriptors")]
    quick.append(attack(1, "exit", "import os\nos._exit(0)"))
    for tried in quick:  # once before, so that images and what is made once are there
        with bench.sandbox() as box:
            box.run(tried.code)
    before = bench.broker_descriptors()
    for _ in range(2):
        for tried in quick:
            with bench.sandbox() as box:
                box.run(tried.code)
    assert host.becomes_true(lambda: bench.broker_descriptors() <= before, seconds=120)
    assert host.alive(bench.broker)
    result = bench.neighbour.run("print(x)")
    assert result.status is OK
