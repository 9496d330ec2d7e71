"""Configuration layers and the small part of the configuration that clients need: fast to load, and without a daemon.

Open `config_layers.py` first (reading and merging), then `client_config.py`. `logs.py` sets up logging in every
process; `policy_files.py` finds and reads a data folder's policy. The full configuration is in `appliance.config`.
"""
