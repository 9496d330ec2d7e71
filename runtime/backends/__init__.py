"""How sandboxes are started, limited, frozen and removed: gVisor and nsjail. Used by the broker alone."""
