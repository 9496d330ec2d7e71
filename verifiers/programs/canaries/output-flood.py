def solve(numbers):
    while True: print('x' * 1000)
