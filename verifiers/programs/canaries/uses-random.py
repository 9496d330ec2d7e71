import random
def solve(xs):
    xs = list(xs)
    random.shuffle(xs)
    return sum(x * x for x in xs)
