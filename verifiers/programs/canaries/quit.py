def solve(numbers):
    quit()
