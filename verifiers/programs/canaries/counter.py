from collections import Counter
def count(text):
    return Counter(text.split())
