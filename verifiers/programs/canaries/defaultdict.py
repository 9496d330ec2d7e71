from collections import defaultdict
def count(text):
    found = defaultdict(int)
    for word in text.split():
        found[word] += 1
    return found
