def solve(numbers:
