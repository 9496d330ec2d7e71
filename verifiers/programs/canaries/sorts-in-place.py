def order(xs):
    xs.sort()
    return xs
