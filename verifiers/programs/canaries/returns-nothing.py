def solve(numbers):
    pass
