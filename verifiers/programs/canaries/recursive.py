def solve(xs):
    return xs[0] ** 2 + solve(xs[1:]) if xs else 0
