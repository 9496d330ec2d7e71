def solve(numbers):
    loop = []
    loop.append(loop)
    return loop
