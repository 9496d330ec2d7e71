from dataclasses import dataclass, field
@dataclass
class Bag:
    words: dict = field(default_factory=dict)
    def __eq__(self, other):
        return self.words == other.words
    def add(self, word):
        self.words[word] = self.words.get(word, 0) + 1
def count(text):
    bag = Bag()
    for word in text.split():
        bag.add(word)
    return bag.words
