"""Parts shared by commands: options, named arguments, inputs, signing, signals, line wrapping.

Open `options.py` first (settings and client of a command), then `lazy_group.py` (tables of commands).
`broker_target.py` chooses a broker, `person.py` asks a person to sign. No command lives here.
"""
