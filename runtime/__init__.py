"""Runs untrusted code: sandboxes, limits, sessions and the pool. Imports nothing else of this project.

What others may import is the front, and nothing below it:

    runtime.sandbox        what a session and a sandbox can do; limits, results, priorities
    runtime.model          what records, messages and settings have in common
    runtime.errors         what can go wrong, and who has to act
    runtime.settings       what the broker, a client, and a driver of a cluster are told
    runtime.profile        what one sandbox may use, what it used, and why it ended
    runtime.programs       programs of our own that a broker runs in boxes
    runtime.package_sets   packages that are installed for guests alone
    runtime.broker_api     what a client asks of a broker
    runtime.confinement    what a process of ours takes from itself before it meets hostile text
    runtime.framing        messages over a stream
    runtime.reactor        one thread that waits for pipes and clocks
    runtime.shutdown       an end that was asked for by a signal
    runtime.parsing        Python's own parser, one text at a time
    runtime.backends       which backends work on this machine
    runtime.broker         a client of a running broker
    runtime.sessions       `Sessions`, the pool on this host
    runtime.cluster        `ClusterSessions`, the pool over many hosts, and this machine's part in one
    runtime.conformance    what the runtime promises, as checks that anybody can run
"""
