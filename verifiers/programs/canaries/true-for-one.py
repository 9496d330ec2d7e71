def order(xs):
    return [True] * len(xs)
