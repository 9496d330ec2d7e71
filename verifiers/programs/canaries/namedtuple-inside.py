from collections import namedtuple
Pair = namedtuple('Pair', 'word number')
def count(text):
    words = text.split()
    pairs = {Pair(word, words.count(word)) for word in words}
    return {pair.word: pair.number for pair in pairs}
