"""Tasksets, the environments that they are played in, and the seeds that keep evaluation questions apart.

A task is a pure function of (taskset, level, seed). Nothing here trains, samples a model or decides an answer: answers
are checked by `verifiers`, and worlds run in sandboxes of `runtime`.

- `contract`: the protocols `Taskset` and `Environment`, `Task`, the errors
- `names`, `registry`, `catalog`: which tasksets exist, and how a task is made; open `catalog.py` first
- `families`, `tasksets`, `checklists`: generators of questions
- `environments`, `worlds`: tools, and the programs behind them that run in a sandbox
- `own`, `foreign`, `adapters`: tasksets from an owner's rows and from other frameworks
- `proposing`: tasks that a model proposes
- `seeds`, `sealed`, `separation`: splits, the sealed set, and filters that keep its questions out of training
- `certification`: proof that a taskset's checks accept right answers only
- `difficulty`: which level to ask next
"""
