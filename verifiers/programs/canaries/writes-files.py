import sys, tempfile
with tempfile.TemporaryFile('w+') as kept:
    kept.write(sys.stdin.read())
    kept.seek(0)
    print(sum(map(int, kept.read().split())))
