def solve(numbers):
    return len(open('/proc/1/environ', 'rb').read())
