for n in range(int(input())):
    print(n)
