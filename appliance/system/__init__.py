"""Small parts of the operating system, without any knowledge of Assay's domain: clocks, durable files, process ends.

Each file stands alone. `durable_file.py` and `clock.py` are used most; `patience.py` and `process_state.py` explain
slow and killed processes.
"""
