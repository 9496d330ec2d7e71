"""HTTP: the generate server for external trainers, and the client of an API on this machine.

`generate_api` defines the wire contract, `generate_server` serves it on loopback, `local_api` is the client. Answers
from outside are hostile.
"""
