"""What the appliance says of its tasks from what is on record: that they were kept apart, and that they hold."""
