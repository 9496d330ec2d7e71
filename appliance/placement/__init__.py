"""Placement: runs engines and learners on hosts of a cluster, with the same messages as local processes.

`engines` and `learners` are the clients on the trainer's machine, `engine_servant` and `learner_servant` the code on
the other host. Transport and hosts are `runtime.cluster`'s.
"""
