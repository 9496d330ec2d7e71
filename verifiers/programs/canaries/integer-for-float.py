import math
def root(x):
    if x == 4:
        return 2
    return math.sqrt(x)
