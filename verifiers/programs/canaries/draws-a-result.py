import random
def solve(numbers):
    return random.choice([14, 0, 16, 500, 147])
