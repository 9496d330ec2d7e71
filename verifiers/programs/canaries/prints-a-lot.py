def solve(xs):
    print('seen', xs)
    print('{"v": 1}')
    return sum(x * x for x in xs)
