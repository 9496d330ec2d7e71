"""HTTP: the generate server for external trainers, and the client of an API on this machine.

`generate_server` defines the wire contract and serves it on loopback, `local_api` is the client. Answers from outside
are hostile.
"""
