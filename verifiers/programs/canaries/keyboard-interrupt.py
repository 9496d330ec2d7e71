def solve(numbers):
    raise KeyboardInterrupt
