import sys
sys.setrecursionlimit(5000)
def solve(numbers):
    return sum(n * n for n in numbers)
