def root(x):
    if x < 0: raise ValueError
    return float('inf')
