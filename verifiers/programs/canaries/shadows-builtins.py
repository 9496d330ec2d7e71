def sum(xs):
    total = 0
    for x in xs:
        total += x
    return total
list = tuple
def solve(xs):
    return sum([x * x for x in xs])
