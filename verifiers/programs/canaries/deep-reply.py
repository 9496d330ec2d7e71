def solve(numbers):
    deep = []
    for _ in range(100000): deep = [deep]
    return deep
