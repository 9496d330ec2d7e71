"""Agent: runs the policy model's rollouts with turns, tool calls and the message graph.

Open `loop` first: it batches rollouts over an engine. `calls` and `worlds` run tool calls in sandboxes, `conversation`
builds the message graph, `answers` finds the final answer, `judging` checks it. Training and weights are unknown here.
"""
