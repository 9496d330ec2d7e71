"""The full configuration of the daemon and its workers, and the places in a data folder.

Open `configuration.py` first: one class per section. `places.py` derives paths, broker settings and limits from it.
Layers and merging are in `appliance.settings`; nothing here checks models, sandboxes or GPUs (`appliance.readiness`).
"""
