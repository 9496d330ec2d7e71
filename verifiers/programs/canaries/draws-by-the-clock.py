import time
def solve(numbers):
    return sum(n * n for n in numbers) + (time.perf_counter_ns() // 1000) % 2
