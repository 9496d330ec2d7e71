class Negative(ValueError):
    pass
def root(x):
    if x < 0:
        raise Negative(x)
    return x ** 0.5
