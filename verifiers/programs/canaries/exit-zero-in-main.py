import sys
def main():
    print(sum(int(word) for line in sys.stdin for word in line.split()))
    sys.exit(0)
main()
