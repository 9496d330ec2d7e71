"""Makes tasks of what a model proposes.

What always holds: a proposal is hostile text, read by a small grammar; what cannot be read, does not run twice with the
same result, is trivial or known already earns nothing, and each refusal has a reason by name. The label of a proposed
task comes from execution or proof and from nowhere else (`labels`). What the infrastructure loses is no refusal.
"""
