def other(numbers):
    return 14
