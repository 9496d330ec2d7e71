"""What gates and decisions are made of: evidence, findings, the sections of a policy, moments in time."""
