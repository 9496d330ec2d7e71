import gc, inspect, signal, atexit
gc.collect()
def solve(numbers):
    return sum(n * n for n in numbers)
