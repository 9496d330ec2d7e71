"""Runs untrusted code: sandboxes, limits, sessions and the pool. Imports nothing else of this project.

Other packages import only the modules below, never what lies beneath them. Start with `sandbox.py`, the interface.

    runtime.sandbox        protocols of sessions and sandboxes; limits, results, priorities
    runtime.model          common base of records, messages and settings
    runtime.errors         exception classes, and who has to act
    runtime.settings       settings of the broker, its clients, and cluster drivers
    runtime.profile        resources of one sandbox, its usage, and why it ended
    runtime.programs       host programs that a broker runs in boxes
    runtime.package_sets   packages installed for guests only
    runtime.broker_api     requests from a client to a broker
    runtime.confinement    rights that host processes drop before they read hostile text
    runtime.framing        messages over a stream
    runtime.reactor        one thread that waits for pipes and timers
    runtime.shutdown       shutdown on a signal
    runtime.parsing        lock around Python's own parser
    runtime.backends       which backends work on this machine
    runtime.broker         client of a running broker
    runtime.sessions       `Sessions`, the pool on this host
    runtime.cluster        `ClusterSessions`, the pool over many hosts, and this machine's part in one
    runtime.conformance    the runtime's promises, as checks that anybody can run
"""
