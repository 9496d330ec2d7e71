def solve(numbers):
    import time
    time.sleep(1000)
