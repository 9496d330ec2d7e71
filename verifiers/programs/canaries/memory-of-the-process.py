def solve(numbers):
    data = open('/proc/self/mem', 'rb').read(100)
    return len(data)
