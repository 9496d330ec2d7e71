import time
def solve(xs):
    time.sleep(0.2)
    return sum(x * x for x in xs)
