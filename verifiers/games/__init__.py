"""Games whose rules nobody is told: what is judged is how few actions a player needed."""
