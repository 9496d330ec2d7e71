import sys
print('reading', file=sys.stderr)
print(sum(map(int, sys.stdin.read().split())))
