def solve(numbers):
    return sum(n * n for n in numbers)
