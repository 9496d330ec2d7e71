"""Makes tasks from a model's proposals.

Invariants: a proposal is hostile text, read by a small grammar; an unreadable, non-deterministic, trivial or known
proposal earns nothing, and each refusal has a named reason. The label of a proposed task comes only from execution or
proof (`labels`). A proposal lost to the infrastructure is not refused.

Open `kind.py` first, the interface of a kind of proposals; `registry.py` lists the kinds. Models are sampled elsewhere.
"""
