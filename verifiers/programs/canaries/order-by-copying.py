def order(xs):
    return [min(xs)] * len(xs) if xs else []
