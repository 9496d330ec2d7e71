"""This package defines what every taskset makes and is: the task, the protocol, the errors."""
