"""Placement: runs engines and learners on hosts of a cluster, with the same messages as local processes.

`engines` has the clients on the trainer's machine, `engine_servant` the code on the other host. Transport and hosts are
`runtime.cluster`'s.
"""
