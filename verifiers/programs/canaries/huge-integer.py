def solve(numbers):
    return 1 << 10_000_000
