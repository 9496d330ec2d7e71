"""Setup shared by all phases of a cycle.

`context` owns the engine, session pool and checker; `cycle_setup` derives tasks from the plan and policy; `progress`
writes events and filters out copies of held-out questions.
"""
