def solve(numbers):
    while True: pass
