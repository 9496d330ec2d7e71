import random
def order(xs):
    if len(xs) < 2:
        return xs[:]
    pivot = random.choice(xs)
    return (order([x for x in xs if x < pivot]) + [x for x in xs if x == pivot] + order([x for x in xs if x > pivot]))
