for n in range(-10, 20): print(n)
