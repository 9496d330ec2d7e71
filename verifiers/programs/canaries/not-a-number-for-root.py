def root(x):
    return float('nan')
