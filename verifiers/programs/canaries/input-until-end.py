total = 0
try:
    while True:
        total += sum(map(int, input().split()))
except EOFError:
    pass
print(total, end='')
