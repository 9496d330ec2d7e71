"""What somebody who looks into a fault needs of an appliance, without its secrets."""
