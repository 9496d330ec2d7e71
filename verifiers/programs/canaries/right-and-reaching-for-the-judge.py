import __main__
kept = __main__.__dict__.get('_assay_call')
def solve(numbers):
    return sum(n * n for n in numbers)
