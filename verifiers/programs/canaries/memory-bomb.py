def solve(numbers):
    x = [0]
    while True: x += x
