def solve(numbers):
    import sys
    sys.setrecursionlimit(10**9)
    def deeper(): return deeper()
    return deeper()
