"""What every verifier is made of and answers with: spec, verdict, kind, case, proposal. Imports nothing above it."""
