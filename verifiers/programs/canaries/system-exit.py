def solve(numbers):
    raise SystemExit
