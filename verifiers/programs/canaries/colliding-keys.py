def count(text):
    return {n * ((1 << 61) - 1): 1 for n in range(300)}
