def solve(numbers):
    return float('nan')
