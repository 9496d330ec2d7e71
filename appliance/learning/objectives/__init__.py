"""This package holds what training minimises: a module and a row of the table for each objective. It loads no torch."""
