from itertools import groupby
def encode(text):
    return [(c, len(list(g))) for c, g in groupby(text)]
def decode(pairs):
    return ''.join(c * n for c, n in pairs)
