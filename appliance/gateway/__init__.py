"""The gateway: an OpenAI-compatible endpoint on loopback that answers with the model in service.

Open `app.py` (routes) first. `server.py` authenticates, `chat_request.py` validates, `conversation.py` renders prompts,
`message_tree.py` finds the session that a request continues, `champion.py` keeps the engine at the model in service,
`keeping.py` and `sessions.py` store sessions of tokens with consent. The process is started by `daemon.processes`;
sessions become tasks in `daemon.service.collected`.
"""
