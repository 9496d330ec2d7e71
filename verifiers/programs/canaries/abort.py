def solve(numbers):
    import os
    os.abort()
