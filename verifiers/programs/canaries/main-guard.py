def solve(numbers):
    return sum(n * n for n in numbers)
if __name__ == '__main__':
    import sys
    print(solve([1]))
    sys.exit(0)
