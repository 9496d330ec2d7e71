class Account:
    def __init__(self):
        self.balance = 0
    def move(self, amount):
        self.balance += amount
        return self.balance
